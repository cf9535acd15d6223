// A learned model of one step, for imagining what actions lead to:
//
//   (o, g, a)  -> (o' - o, g' - g)                an ensemble, each member on batches of its own
//   (g, g', a) -> (r, contact', p(terminated))    one network
//
// o observation, g aligned geometry. Rewards and contacts are told from where a step leads, not
// from where it began: a sparse reward is a sharp function of the former.
//
// A goal that is read from Z (slots 2 and 3 and the last two entries of o) is held during a step:
// its offset changes as the position does. What the step itself makes of the reading is no part of
// the model, and would drown motion: readings jump while an episode is young.
#ifndef MSRL_AGENTS_MSRL_STEP_MODEL_H_
#define MSRL_AGENTS_MSRL_STEP_MODEL_H_

#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/common/units.h"
#include "msrl/core/config.h"
#include "msrl/env/spec.h"
#include "msrl/memory/replay.h"

namespace msrl {

struct StepModelSettings {
  static constexpr int kMaxMembers = 16;

  int width = 64;
  int members = 3;
  int batch = 128;
  double learning_rate = 1e-3;
  int first_updates = 1000;
  int updates = 1;

  template <typename V>
  void Fields(V&& visit) {
    visit("model_width", width, "width of the model's two hidden layers",
          Between(1, kMaxHiddenWidth));
    visit("model_members", members, "networks whose disagreement tells what the model knows",
          Between(1, kMaxMembers));
    visit("model_batch", batch, "transitions per update of each", Between(1, 65536));
    visit("model_learning_rate", learning_rate, "Adam step size of the model", Positive());
    visit("model_first_updates", first_updates, "updates of the model after the random steps",
          NotNegative());
    visit("model_updates", updates, "updates of the model per step after that", NotNegative());
  }
};

// States that exist only in the model, one column each.
struct Imagined {
  Imagined(int observation_size, int most);

  int count = 0;
  Eigen::MatrixXf observation, geometry;
  // of the last step
  Eigen::RowVectorXf reward;
  Eigen::RowVectorXf ends;   // probability that it terminated the episode
  Eigen::RowVectorXf doubt;  // spread of the members' geometry, in units of a typical step's
};

class StepModel {
 public:
  // Predictions stay within this many standard deviations of the steps that were seen at first.
  static constexpr float kReach = 6.0F;

  // Imagines at most `most` states at once. `goal_is_read`: see above. UserError on impossible
  // settings.
  StepModel(const EnvSpec& spec, const StepModelSettings& settings, int most, std::uint64_t seed,
            bool goal_is_read = false);

  // Numbers per action: its dimension, or one per discrete action (one-hot).
  int action_rows() const { return m_; }
  std::int64_t parameter_count() const;
  // Whether it has learned anything.
  bool ready() const { return ready_; }

  // The updates of one step, on a replay that keeps geometry. The first call takes its units from
  // all that is there, and makes the first updates. RunError if a number goes bad.
  void Update(const Replay& replay);
  // One step of every imagined state; `action` has action_rows() rows. No allocation. RunError if a
  // prediction is not finite.
  void Advance(const ConstMatrixRef& action, Imagined& states);

  void DrainMetrics(MetricSink& sink) { metrics_.Drain(sink); }
  void Visit(const Archive& state);

 private:
  void Gather(const Replay& replay, Eigen::Index column, float* input, float* change) const;
  void FindUnits(const Replay& replay);
  void Learn(const Replay& replay);
  void LearnOutcome();
  void FillOutcomeInput(const float* from, const float* to, const float* action,
                        float* input) const;

  StepModelSettings settings_;
  bool discrete_;
  bool goal_is_read_;
  int origin_;  // of the goal's offset
  int n_, m_;
  int input_rows_, change_rows_;
  float bound_;  // of geometry
  MlpSpec change_spec_, outcome_spec_;
  Mlp change_, outcome_;
  Adam change_adam_, outcome_adam_;
  Units input_units_, change_units_;
  Rng rng_;
  bool ready_ = false;
  MetricMeans metrics_;

  // workspace of updates
  ReplayBatch batch_;
  MlpTape change_tape_, outcome_tape_;
  FloatBuffer change_gradients_, outcome_gradients_;
  Eigen::MatrixXf input_, target_, d_change_;
  Eigen::MatrixXf outcome_input_, outcome_target_, d_outcome_;
  // workspace of Advance
  MlpTape act_change_tape_, act_outcome_tape_;
  Eigen::MatrixXf act_input_, act_outcome_input_, act_change_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_STEP_MODEL_H_
