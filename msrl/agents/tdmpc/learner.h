// TD-MPC2's losses and updates, of an agent that plays and of a model that is taught by source
// episodes. docs/agents/tdmpc.md
#ifndef MSRL_AGENTS_TDMPC_LEARNER_H_
#define MSRL_AGENTS_TDMPC_LEARNER_H_

#include <vector>

#include "msrl/agents/metrics.h"
#include "msrl/agents/tdmpc/latent_model.h"
#include "msrl/core/config.h"
#include "msrl/core/enum_names.h"
#include "msrl/files/state.h"
#include "msrl/memory/replay.h"

namespace msrl {

// Whose state a prediction is held against: the encoder's, or that of its slow copy.
enum class ConsistencyTarget { kEncoder, kSlow };
constexpr auto EnumNames(ConsistencyTarget) { return Names("encoder", "slow"); }

// What two values are worth to the policy and to a plan.
enum class PairValue { kMean, kMin };
constexpr auto EnumNames(PairValue) { return Names("mean", "min"); }

// The numbers of the losses and of how they are followed.
struct LatentWeights {
  double tau = 0.01;
  double rho = 0.5;
  double learning_rate = 3e-4;
  double encoder_learning_rate = 1e-4;
  double max_gradient_norm = 20.0;
  double consistency_weight = 20.0;
  double reward_weight = 0.1;
  double value_weight = 0.1;
  double termination_weight = 1.0;
  double entropy_weight = 1e-4;

  template <typename V>
  void Fields(V&& visit) {
    visit("tau", tau, "share of the network in its target at every update",
          Between(0, 1).OpenBelow());
    visit("rho", rho, "weight of a step of a sequence, relative to the one before",
          Between(0, 1).OpenBelow());
    visit("learning_rate", learning_rate, "Adam step size", Positive());
    visit("encoder_learning_rate", encoder_learning_rate, "Adam step size of the encoder",
          Positive());
    visit("max_gradient_norm", max_gradient_norm, "gradients are scaled down to this norm",
          Positive());
    visit("consistency_weight", consistency_weight, "weight of the error of predicted states",
          NotNegative());
    visit("reward_weight", reward_weight, "weight of the loss of rewards", NotNegative());
    visit("value_weight", value_weight, "weight of the loss of values", NotNegative());
    visit("termination_weight", termination_weight, "weight of the loss of terminations",
          NotNegative());
    visit("entropy_weight", entropy_weight, "weight of the policy's entropy", NotNegative());
  }
};

struct LatentLossSettings : LatentWeights {
  int batch_size = 0;  // sequences per update
  int horizon = 0;     // steps of each
  double gamma = 0.99;
  ConsistencyTarget consistency_target = ConsistencyTarget::kEncoder;
  PairValue pair_value = PairValue::kMean;
  bool frozen = false;  // h and d stay as they are

  // ---- of source episodes ----
  bool lessons = false;       // whether updates come with a SourceLesson
  double clone_weight = 0.0;  // of the log-likelihood of what was done there
};

// What source episodes say besides a batch of them, where a batch's actions are slots.
struct SourceLesson {
  Eigen::RowVectorXf task;   // of every sequence, by number
  Eigen::MatrixXf mask;      // slots x sequences: 1 where the task has the slot
  Eigen::RowVectorXf label;  // G_t of every step
  double label_share = 0.0;  // kappa: y_t <- (1 - kappa) y_t + kappa G_t
};

// The smaller, or the mean, of two rows.
Node OfPair(StaticGraph& graph, Node pair, PairValue kind);
// Two different numbers of value networks, 2 x 1.
void DrawPair(int q_count, Rng& rng, StridedMap pair);

class LatentLearner {
 public:
  // The model must outlive the learner.
  LatentLearner(LatentModel& model, const LatentLossSettings& settings, Rng noise);

  // One update on batch_size sequences of `horizon` steps. RunError if a number goes bad.
  void UpdateOn(const SequenceBatch& batch) { Update(batch, nullptr); }
  void UpdateOn(const SequenceBatch& batch, const SourceLesson& lesson) { Update(batch, &lesson); }

  double scale() const { return scale_; }  // S, what values are divided by in the policy's loss
  void DrainMetrics(MetricSink& sink) { metrics_.Drain(sink); }

  // All but the model.
  void Visit(const Archive& state);

 private:
  // The loss of everything but the policy.
  struct WorldGraph {
    WorldGraph(LatentModel& model, const LatentLossSettings& settings);

    StaticGraph graph;
    Node observation, action, reward, continues, noise, pair;
    Node task, mask, label, label_share;  // where there are such
    Node weight;                          // of every step, in the mean
    std::vector<Node> z;                  // z_0 = h(o_0), z_{t+1} = d(z_t, a_t)
    Node consistency, reward_loss, value_loss, termination_loss, loss;
  };
  // What the policy would do in the states of a sequence, and what that is worth.
  struct PolicyGraph {
    PolicyGraph(LatentModel& model, const LatentLossSettings& settings);

    StaticGraph graph;
    Node z, noise, pair;
    Node task, mask;
    Node taken;  // what was done, before the tanh
    Node q, entropy;
    Node clone;  // - log N(taken; mu, sigma) of the slots that there are, one row
  };

  void Update(const SequenceBatch& batch, const SourceLesson* lesson);
  void UpdateWorld(const SequenceBatch& batch);
  void UpdatePolicy(const SequenceBatch& batch, const SourceLesson* lesson);
  void StepWorld();
  void FillLesson(const SequenceBatch& batch, const SourceLesson& lesson);

  LatentModel& model_;
  LatentLossSettings settings_;
  Rng noise_rng_;
  double scale_ = 1.0;
  WorldGraph world_;
  PolicyGraph policy_;

  // workspace
  std::vector<float> values_;
  Eigen::RowVectorXf weight_, d_q_, d_entropy_, d_clone_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_LEARNER_H_
