// Planning in matrix space with a learned model: candidate actions are held for a few imagined
// steps, every future is composed onto the present matrix, and critic and source judge what comes
// of it:
//
//   Z^ = Z + sum_h psi^_h psi^_h^T
//   S(a) = sum_{h<H} gamma^h c_h (r^_h - d doubt_h) + gamma^H c_H (V(o^, Z^) + w F_source(Z^))
//
// c_h is the chance that the episode still goes on, doubt_h the ensemble's disagreement, d its
// price. w fades with the steps, because F_source does not learn here.
#ifndef MSRL_AGENTS_MSRL_MODEL_PLANNER_H_
#define MSRL_AGENTS_MSRL_MODEL_PLANNER_H_

#include <optional>
#include <vector>

#include "msrl/agents/common/critic_agent.h"
#include "msrl/agents/msrl/step_model.h"

namespace msrl {

struct ModelPlanSettings {
  StepModelSettings model;
  int candidates = 16;
  int horizon = 3;
  int rounds = 1;
  double doubt = 0.0;
  double margin = 0.0;
  double source_weight = 1.0;
  double source_amplitude = 2.0;
  std::int64_t source_steps = 20'000;

  template <typename V>
  void Fields(V&& visit) {
    visit("plan_candidates", candidates,
          "actions that are tried in the model, the policy's choice included; discrete: all",
          Between(2, Critic::kMaxCandidates));
    visit("plan_horizon", horizon, "imagined steps that each is held", Between(1, 100));
    visit("plan_rounds", rounds,
          "times that candidates are drawn, each time around the best of the last", Between(1, 20));
    visit("plan_doubt", doubt, "price of the model's disagreement", NotNegative());
    visit("plan_margin", margin, "by how much a candidate must beat the policy's choice",
          NotNegative());
    visit("source_weight", source_weight, "weight of the source's F at the end of a plan",
          NotNegative());
    visit("source_amplitude", source_amplitude,
          "F of the source is scaled to exactly this amplitude over the random steps; 0: it is not",
          NotNegative());
    visit("source_steps", source_steps, "steps over which that weight fades to 0; 0: it does not",
          NotNegative());
    model.Fields(visit);
  }
};

class ModelPlanner {
 public:
  // The base's critic sees these features of Z. `goal_is_read`: see StepModel. UserError on
  // impossible settings.
  ModelPlanner(const EnvSpec& spec, const ModelPlanSettings& settings, const Lift::Ptr& lift,
               const MatrixFeatureOptions& features, double gamma, std::uint64_t seed,
               bool goal_is_read = false);

  // What was learned elsewhere, as it is: F_source.
  void SetSource(const ValueBranch& branch);
  bool has_source() const { return source_.has_value(); }
  // F_source = -factor |goal - position| instead of a branch: what needs no learning elsewhere.
  void SetDistance(double factor) { distance_ = factor; }
  const ValueBranch& source() const { return *source_; }

  bool ready() const { return model_.ready(); }
  // Replaces the choice in `out` by a candidate that scores better; whether there was one. No
  // allocation.
  bool Improve(const Situation& situation, ActMode mode, ActionValuer& base, Rng& rng,
               ActionBuffer& out);
  // After every step that is not a random one.
  void Update(const Replay& replay);

  const StepModel& model() const { return model_; }
  // w of the next plan.
  double SourceWeight() const;
  std::int64_t parameter_count() const { return model_.parameter_count(); }
  void DrainMetrics(MetricSink& sink);
  // If there was a source, a branch of its shape must have been set before reading.
  void Visit(const Archive& state);

 private:
  void DrawCandidates(const ActionBuffer& choice, Rng& rng);
  void RedrawAroundBest(Rng& rng);
  void Imagine(const Situation& situation);
  void AddValues(ActionValuer& base);
  void Compose(int candidate);
  int Best() const;

  ModelPlanSettings settings_;
  EnvSpec spec_;
  bool discrete_;
  int m_;  // rows of an action
  int count_;
  Lift::Ptr lift_;
  MatrixFeatures features_;
  double gamma_;
  StepModel model_;
  std::optional<ValueBranch> source_;
  double distance_ = 0.0;
  std::int64_t steps_ = 0;  // since the random ones
  MetricMeans metrics_;

  // workspace: one column or entry per candidate
  Eigen::MatrixXf candidates_;
  Imagined ahead_;
  Eigen::MatrixXf before_;  // geometry before an imagined step
  std::vector<SegmentMatrix> z_;
  Eigen::MatrixXf z_features_;
  std::vector<float> value_;
  Eigen::VectorXd score_, alive_;
  std::vector<int> order_;
  Eigen::VectorXd psi_;
  std::optional<MlpTape> source_tape_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_MODEL_PLANNER_H_
