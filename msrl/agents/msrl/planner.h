// Lookahead over reused segments (paper, Section 5): candidate actions are scored by
//   S(a) = Q(o, Z, a) + beta U(a),
//   U(a) = max of V(o^, Z + M(sigma)) over library segments sigma that begin near here with an
//          action near a and that the obstruction filter keeps; o^ is where sigma ended.
// A future may go on with segments that begin near where the last one ended, Z + M(sigma) +
// M(sigma') + ...; the filter judges every joint. The library is asked for each candidate: the
// policy's own choice and random actions; of discrete actions, all.
#ifndef MSRL_AGENTS_MSRL_PLANNER_H_
#define MSRL_AGENTS_MSRL_PLANNER_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/obstruction_proxy.h"
#include "msrl/agents/simulator.h"
#include "msrl/memory/segment_library.h"

namespace msrl {

enum class Lookahead { kOff, kTraining, kAlways };
constexpr auto EnumNames(Lookahead) { return Names("off", "training", "always"); }

enum class Fallback { kZero, kValue };
constexpr auto EnumNames(Fallback) { return Names("zero", "value"); }

struct PlannerSettings {
  std::int64_t library_size = 5000;
  LibraryPolicy library_policy = LibraryPolicy::kFifo;
  int segment_steps = 1;
  int chain = 1;
  bool future_rewards = false;
  Lookahead lookahead = Lookahead::kTraining;
  double beta = 0.35;
  int candidates = 8;
  int neighbours = 3;
  double context_radius = 0.5;
  double action_radius = 0.3;
  Fallback fallback = Fallback::kValue;
  double margin = 0.05;
  int simulation_check = 0;
  bool obstruction = true;
  ObstructionConfig proxy;

  template <typename V>
  void Fields(V&& visit) {
    visit("library_size", library_size, "segments in the library", Between(1, 1e9));
    visit("library_policy", library_policy, "which segments a full library keeps");
    visit("segment_steps", segment_steps, "steps of a segment; the end of an episode cuts it short",
          Between(1, 1000));
    visit("chain", chain, "segments that a future consists of at most", Between(1, 100));
    visit("future_rewards", future_rewards,
          "whether the rewards of a future count, not only the value of where it ends");
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
    visit("simulation_check", simulation_check,
          "futures per training step, the best first, that are tried in a simulator and dropped if "
          "they don't come true; its steps are counted",
          Between(0, Critic::kMaxCandidates));
    visit("obstruction", obstruction, "filter futures by the obstruction proxy");
    proxy.Fields(visit);
  }
};

// Futures, one column each.
struct Futures {
  Futures(int observation_size, int feature_count, int most);
  void Visit(const Archive& state);

  int count = 0;
  Eigen::MatrixXf tails, segment;     // o^, features of M(sigma)
  Eigen::MatrixXf geometry;           // of o^
  std::vector<float> probability;     // of obstruction
  std::vector<std::int64_t> lengths;  // steps of sigma
};

// A segment that is being lived through, and the futures that were known of its first action.
struct Course {
  Course(int observation_size, int action_size, const Lift::Ptr& lift, int feature_count,
         int most_futures);
  void Visit(const Archive& state);

  std::int64_t steps = 0;
  bool planned = false;                // whether any future was known
  Eigen::MatrixXf observation, z;      // o and features of Z at its beginning, one column
  std::vector<float> action, context;  // head action, geometry at its beginning
  SegmentMatrix matrix;
  double reward_sum = 0.0;
  Futures futures;
};

// What an episode has to remember: the futures that the last choice knew of until it is seen what
// was played, and the segments that are not complete yet.
struct Plan : Carry {
  Plan(int observation_size, int action_size, const Lift::Ptr& lift, int feature_count,
       int most_futures, int segment_steps);
  void Begin() override;
  void Visit(const Archive& state) override;

  Course& course(int age) {  // 0: the oldest
    return courses[static_cast<std::size_t>(first + age) % courses.size()];
  }

  Eigen::MatrixXf observation, z;  // o and features of Z, one column
  Eigen::MatrixXf heads;           // first actions of the futures
  Futures futures;                 // none: nothing to learn from
  std::vector<Course> courses;     // a ring
  int first = 0, open = 0;
};

// The library, the obstruction proxy and the choice of actions.
class Planner {
 public:
  // `critic_features` is what the base's critic sees of Z: these features, or none.
  Planner(const EnvSpec& spec, const PlannerSettings& settings, const Lift::Ptr& lift,
          const MatrixFeatureOptions& features, bool critic_sees_matrix, std::uint64_t seed);

  // Starts with the segments of another library. UserError that names `source` unless they fit.
  void Take(const SegmentLibrary& other, std::string_view source);
  std::unique_ptr<Plan> MakePlan() const;
  // Replaces the policy's choice in `out` by a candidate that scores better; candidates are drawn
  // from `rng`. If `exploring`, the plan waits for Observe; otherwise it is scratch space.
  // With a simulator the best futures are tried there. No allocation but the simulator's.
  void Improve(const Situation& situation, bool exploring, ActionValuer& base, Plan& plan, Rng& rng,
               ActionBuffer& out, Simulator* simulator = nullptr);
  // A step: into the library, and what it says about the futures of the plan, which is done then.
  void Observe(const Experience& experience, Plan& plan);
  void Update();

  const SegmentLibrary& library() const { return library_; }
  const ObstructionProxy& proxy() const { return proxy_; }
  bool checks() const { return settings_.simulation_check > 0; }
  bool filters() const { return settings_.obstruction; }  // whether the proxy is used
  std::int64_t parameter_count() const {
    return settings_.obstruction ? proxy_.parameter_count() : 0;
  }
  // Once: from which step on the filter has removed futures.
  std::string TakeNotice();
  void DrainMetrics(MetricSink& sink);
  void Visit(const Archive& state);

 private:
  int DrawCandidates(const ActionBuffer& choice, Rng& rng);
  int FindFutures(const Situation& situation, int candidates, Plan& plan);
  void JudgeFutures(ActionValuer& base, int futures, Plan& plan);
  void CheckFutures(Simulator& simulator, int futures, const Plan& plan);
  void LengthenFutures(ActionValuer& base, int futures, const Plan& plan);
  // Where a segment leads from a matrix, as column of a workspace.
  void Compose(std::int64_t slot, const SegmentMatrix& from, int column, Eigen::MatrixXf& tails,
               Eigen::MatrixXf& segment, Eigen::MatrixXf& ahead);
  // Whether a future of the plan begins with the action in a column.
  template <typename Column>
  bool Compatible(const Plan& plan, int future, const Column& action) const;
  float BestFuture(const Plan& plan, int candidate, int futures) const;
  void CountFiltered(std::span<const float> probability);
  void BeginCourse(const Experience& experience, Plan& plan);
  void LearnOutcomes(const Experience& experience, const Course& course);
  void Finish(const Experience& experience, const Course& course);

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
  std::int64_t steps_ = 0;
  std::int64_t first_removed_ = 0;  // step in which the filter first removed a future; 0: none
  bool told_ = false;               // whether the user knows
  MetricMeans metrics_;

  // workspace of Improve: one column per future or candidate
  std::vector<Neighbour> neighbours_;
  std::vector<int> counts_;          // neighbours of each candidate
  Eigen::MatrixXf observation_, z_;  // o and features of Z, copied to every candidate
  Eigen::MatrixXf ahead_;            // features of Z + M(sigma)
  Eigen::MatrixXf candidates_;
  std::vector<float> context_, value_, q_;
  std::vector<std::uint8_t> kept_, checked_;
  ActionBuffer tried_;
  SegmentMatrix matrix_;

  // workspace of chains, one per future: where it ends so far, and where it might go on to
  struct Chain {
    std::int64_t slot = 0;
    SegmentMatrix z;
    double rewards = 0.0;
    int segments = 1;
    bool open = true;
    int found = 0;  // of its places in next_
    std::int64_t best = -1;
    float best_value = 0.0F;
  };
  std::vector<Chain> chains_;
  std::vector<Neighbour> next_;
  std::vector<int> columns_;               // the chain that a column belongs to
  Eigen::MatrixXf chain_tails_, chain_z_;  // o^ and features of Z^ so far
  Eigen::MatrixXf next_tails_, next_segment_, next_z_;
  std::vector<float> next_value_;

  // workspace of Observe
  std::vector<float> tail_observation_, tail_geometry_;
  std::vector<double> foretold_;
  Eigen::MatrixXf course_;  // features of a course's matrix
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_PLANNER_H_
