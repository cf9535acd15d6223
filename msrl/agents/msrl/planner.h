// Lookahead over reused segments (paper, Section 5): candidate actions are scored by
//   S(a) = Q(o, Z, a) + beta U(a),
//   U(a) = max of V(o^, Z + M(sigma)) over library segments sigma that begin near here with an
//   action
//          near a and that the obstruction filter keeps; o^ is where sigma ended.
// Candidates are the policy's own choice and the head actions of nearby segments; of discrete
// actions, all.
#ifndef MSRL_AGENTS_MSRL_PLANNER_H_
#define MSRL_AGENTS_MSRL_PLANNER_H_

#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/obstruction_proxy.h"
#include "msrl/memory/segment_library.h"

namespace msrl {

struct PlannerSettings {
  bool library = true;
  std::int64_t library_size = 5000;
  std::string library_policy = "fifo";
  std::string lookahead = "training";
  double beta = 0.35;
  int neighbours = 4;
  double context_radius = 0.5;
  double action_radius = 0.3;
  std::string fallback = "value";
  double margin = 0.05;
  bool obstruction = true;
  ObstructionConfig proxy;

  template <typename V>
  void Fields(V&& visit) {
    visit("library", library, "keep a library of segments");
    visit("library_size", library_size, "segments in the library");
    visit("library_policy", library_policy, "which segments a full library keeps",
          {"fifo", "reservoir", "by-value"});
    visit("lookahead", lookahead, "when actions are scored by the futures that the library offers",
          {"off", "training", "always"});
    visit("beta", beta, "weight of the best future");
    visit("neighbours", neighbours, "segments that are looked at per step");
    visit("context_radius", context_radius, "how near a segment must begin, in aligned geometry");
    visit("action_radius", action_radius,
          "how near its first action must be, root mean square per dimension");
    visit("fallback", fallback,
          "what an action without a future gets: U = 0, or the value of the policy's choice",
          {"zero", "value"});
    visit("margin", margin, "by how much a candidate's score must beat the policy's choice");
    visit("obstruction", obstruction, "filter futures by the obstruction proxy");
    proxy.Fields(visit);
  }
};

// UserError that names the setting.
void RequireValid(const PlannerSettings& settings);

// The library, the obstruction proxy and the choice of actions.
class Planner {
 public:
  // `critic_features` is what the base's critic sees of Z: these features, or none.
  Planner(const EnvSpec& spec, const PlannerSettings& settings, const Lift::Ptr& lift,
          const MatrixFeatureOptions& features, bool critic_sees_matrix, std::uint64_t seed);

  // Replaces the policy's choice in `out` by a candidate that scores better. The choice is
  // remembered until Observe if `exploring`. No allocation.
  void Improve(const Situation& situation, bool exploring, CriticAgent& base, ActionBuffer& out);
  // A step: into the library, and what it says about the futures that were considered.
  void Observe(const Experience& experience);
  void Update();

  const SegmentLibrary& library() const { return library_; }
  const ObstructionProxy& proxy() const { return proxy_; }
  bool filters() const { return settings_.obstruction; }  // whether the proxy is used
  std::int64_t parameter_count() const {
    return settings_.obstruction ? proxy_.parameter_count() : 0;
  }
  void DrainMetrics(MetricSink& sink);
  void Visit(const Archive& state);

 private:
  int FindFutures(const Situation& situation);
  void JudgeFutures(CriticAgent& base, int futures);
  int MakeCandidates(const ActionBuffer& choice, int futures);
  bool Compatible(int future, int candidate) const;
  float BestFuture(int candidate, int futures) const;
  void LearnOutcomes(const Experience& experience);

  PlannerSettings settings_;
  ActionSpec action_spec_;
  std::string env_;
  int n_;
  int m_;  // numbers per action
  MatrixFeatures features_;
  int critic_rows_;  // of the features that the critic sees
  SegmentLibrary library_;
  ObstructionProxy proxy_;
  Rng rng_;
  std::int64_t episode_ = 0;
  MetricMeans metrics_;

  // the last plan: one column per future or candidate
  std::vector<Neighbour> neighbours_;
  Eigen::MatrixXf observation_, z_;          // o and features of Z, copied to every candidate
  Eigen::MatrixXf tails_, segment_, ahead_;  // o^, features of M(sigma) and of Z + M(sigma)
  Eigen::MatrixXf heads_, candidates_;
  std::vector<float> context_, probability_, value_, q_;
  std::vector<std::uint8_t> kept_;
  SegmentMatrix matrix_;
  int planned_futures_ = 0;  // 0: nothing to learn from

  // workspace of Observe
  std::vector<float> action_, tail_observation_, tail_geometry_;
  std::vector<double> foretold_;
  Eigen::MatrixXf step_;  // features of one step's matrix
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_PLANNER_H_
