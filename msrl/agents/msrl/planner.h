// Lookahead over reused segments (paper, Section 5): candidate actions are scored by
//   S(a) = Q(o, Z, a) + beta U(a),
//   U(a) = max of V(o^, Z + M(sigma)) over library segments sigma that begin near here with an
//          action near a and that the obstruction filter keeps; o^ is where sigma ended.
// The library is asked for each candidate: the policy's own choice and random actions; of discrete
// actions, all.
#ifndef MSRL_AGENTS_MSRL_PLANNER_H_
#define MSRL_AGENTS_MSRL_PLANNER_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/obstruction_proxy.h"
#include "msrl/memory/segment_library.h"

namespace msrl {

enum class Lookahead { kOff, kTraining, kAlways };
constexpr auto EnumNames(Lookahead) { return Names("off", "training", "always"); }

enum class Fallback { kZero, kValue };
constexpr auto EnumNames(Fallback) { return Names("zero", "value"); }

struct PlannerSettings {
  std::int64_t library_size = 5000;
  LibraryPolicy library_policy = LibraryPolicy::kFifo;
  Lookahead lookahead = Lookahead::kTraining;
  double beta = 0.35;
  int candidates = 8;
  int neighbours = 3;
  double context_radius = 0.5;
  double action_radius = 0.3;
  Fallback fallback = Fallback::kValue;
  double margin = 0.05;
  bool obstruction = true;
  ObstructionConfig proxy;

  template <typename V>
  void Fields(V&& visit) {
    visit("library_size", library_size, "segments in the library", Between(1, 1e9));
    visit("library_policy", library_policy, "which segments a full library keeps");
    visit("lookahead", lookahead, "when actions are scored by the futures that the library offers");
    visit("beta", beta, "weight of the best future", NotNegative());
    visit("candidates", candidates,
          "actions that are weighed, the policy's choice included; discrete: all",
          Between(1, Critic::kMaxCandidates));
    visit("neighbours", neighbours, "segments that are looked at for each",
          Between(1, Critic::kMaxCandidates));
    visit("context_radius", context_radius, "how near a segment must begin, in aligned geometry",
          Positive());
    visit("action_radius", action_radius,
          "how near its first action must be, root mean square per dimension", NotNegative());
    visit("fallback", fallback,
          "what an action without a future gets: U = 0, or the value of the policy's choice");
    visit("margin", margin, "by how much a candidate's score must beat the policy's choice",
          NotNegative());
    visit("obstruction", obstruction, "filter futures by the obstruction proxy");
    proxy.Fields(visit);
  }
};

// The futures that the last choice knew of, one column each, until it is seen what came of it.
struct Plan : Carry {
  Plan(int observation_size, int feature_count, int action_size, int most_futures);
  void Begin() override { futures = 0; }

  int futures = 0;                  // 0: nothing to learn from
  Eigen::MatrixXf observation, z;   // o and features of Z, one column
  Eigen::MatrixXf action;           // what is executed, one column
  Eigen::MatrixXf tails, segment;   // o^, features of M(sigma)
  Eigen::MatrixXf heads, geometry;  // first actions, and the geometry of o^
  std::vector<float> probability;   // of obstruction
};

// The library, the obstruction proxy and the choice of actions.
class Planner {
 public:
  // `critic_features` is what the base's critic sees of Z: these features, or none.
  Planner(const EnvSpec& spec, const PlannerSettings& settings, const Lift::Ptr& lift,
          const MatrixFeatureOptions& features, bool critic_sees_matrix, std::uint64_t seed);

  std::unique_ptr<Plan> MakePlan() const;
  // Replaces the policy's choice in `out` by a candidate that scores better; candidates are drawn
  // from `rng`. If `exploring`, the plan waits for Observe; otherwise it is scratch space. No
  // allocation.
  void Improve(const Situation& situation, bool exploring, ActionValuer& base, Plan& plan, Rng& rng,
               ActionBuffer& out);
  // A step: into the library, and what it says about the futures of the plan, which is done then.
  void Observe(const Experience& experience, Plan& plan);
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
  int DrawCandidates(const ActionBuffer& choice, Rng& rng);
  int FindFutures(const Situation& situation, int candidates, Plan& plan);
  void JudgeFutures(ActionValuer& base, int futures, Plan& plan);
  // Whether a future of the plan begins with the action in a column.
  template <typename Column>
  bool Compatible(const Plan& plan, int future, const Column& action) const;
  float BestFuture(const Plan& plan, int candidate, int futures) const;
  void LearnOutcomes(const Experience& experience, const Plan& plan);

  PlannerSettings settings_;
  ActionSpec action_spec_;
  std::string env_;
  int n_;
  int m_;  // numbers per action
  int most_candidates_, most_futures_;
  MatrixFeatures features_;
  int critic_rows_;  // of the features that the critic sees
  SegmentLibrary library_;
  ObstructionProxy proxy_;
  Rng rng_;
  std::int64_t episode_ = 0;
  MetricMeans metrics_;

  // workspace of Improve: one column per future or candidate
  std::vector<Neighbour> neighbours_;
  Eigen::MatrixXf observation_, z_;  // o and features of Z, copied to every candidate
  Eigen::MatrixXf ahead_;            // features of Z + M(sigma)
  Eigen::MatrixXf candidates_;
  std::vector<float> context_, value_, q_;
  std::vector<std::uint8_t> kept_;
  SegmentMatrix matrix_;

  // workspace of Observe
  std::vector<float> action_, tail_observation_, tail_geometry_;
  std::vector<double> foretold_;
  Eigen::MatrixXf step_;  // features of one step's matrix
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_PLANNER_H_
