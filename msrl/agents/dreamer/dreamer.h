// DreamerV3 (Hafner et al. 2023) with state input: a recurrent world model with categorical
// latents, and an actor and a critic that learn in what it imagines. docs/agents/dreamer.md
#ifndef MSRL_AGENTS_DREAMER_DREAMER_H_
#define MSRL_AGENTS_DREAMER_DREAMER_H_

#include <array>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/dreamer/rssm.h"
#include "msrl/core/config.h"
#include "msrl/memory/replay.h"
#include "msrl/nn/running_normalizer.h"

namespace msrl {

enum class DreamerPreset { kCompact, kReference };
constexpr auto EnumNames(DreamerPreset /*type*/) { return Names("compact", "reference"); }

struct DreamerConfig {
  DreamerPreset preset = DreamerPreset::kCompact;
  int deter = 128;
  int blocks = 4;
  int stoch = 8;
  int classes = 8;
  int hidden = 96;
  int units = 128;
  int layers = 2;
  int sequences = 8;
  int sequence_length = 32;
  int start_steps = 16;
  int horizon = 10;
  std::int64_t replay_size = 1'000'000;
  std::int64_t random_steps = 1000;
  int first_updates = 100;
  std::int64_t train_ratio = 128;
  double learning_rate = 5e-4;
  int warm_up = 200;
  bool normalize_observations = true;
  double gamma = 0.99;
  double lambda = 0.95;
  double entropy_weight = 3e-4;
  double free_nats = 1.0;
  double dynamics_weight = 1.0;
  double representation_weight = 0.1;
  double replay_value_weight = 0.3;
  double slow_rate = 0.02;

  static DreamerConfig Of(DreamerPreset preset);

  template <typename V>
  void Fields(V&& visit) {
    const DreamerPreset before = preset;
    visit("preset", preset, "sizes and schedule that the other settings start from");
    if (preset != before) *this = Of(preset);
    visit("deter", deter, "size of the deterministic state h; a multiple of blocks",
          Between(1, kMaxHiddenWidth));
    visit("blocks", blocks, "blocks of the recurrent weights", Between(1, 64));
    visit("stoch", stoch, "categorical variables of the stochastic state z", Between(1, 256));
    visit("classes", classes, "categories of each", Between(2, 256));
    visit("hidden", hidden, "width inside the recurrent model", Between(1, kMaxHiddenWidth));
    visit("units", units, "width of encoder, decoder, heads, actor and critic",
          Between(1, kMaxHiddenWidth));
    visit("layers", layers, "layers of encoder, decoder, actor and critic",
          Between(1, kMaxHiddenLayers));
    visit("sequences", sequences, "sequences per update", Positive());
    visit("sequence_length", sequence_length, "steps of each", AtLeast(2));
    visit("start_steps", start_steps, "last steps of each from which it imagines", AtLeast(2));
    visit("horizon", horizon, "steps it imagines", Positive());
    visit("replay_size", replay_size, "states kept in the replay", AtLeast(2));
    visit("random_steps", random_steps, "uniformly random steps before the first update",
          Positive());
    visit("first_updates", first_updates, "updates at once after these", NotNegative());
    visit("train_ratio", train_ratio, "replayed steps per environment step", Positive());
    visit("learning_rate", learning_rate, "LaProp step size", Positive());
    visit("warm_up", warm_up, "updates until the step size is reached", Positive());
    visit("normalize_observations", normalize_observations, "by running mean and deviation");
    visit("gamma", gamma, "discount", Between(0, 1).OpenAbove());
    visit("lambda", lambda, "decay of the returns' mixture", Between(0, 1));
    visit("entropy_weight", entropy_weight, "weight of the policy's entropy", NotNegative());
    visit("free_nats", free_nats, "KL divergence that costs nothing", NotNegative());
    visit("dynamics_weight", dynamics_weight, "weight of the KL that trains the prior",
          NotNegative());
    visit("representation_weight", representation_weight,
          "weight of the KL that trains the posterior", NotNegative());
    visit("replay_value_weight", replay_value_weight, "weight of the critic's loss on real rewards",
          NotNegative());
    visit("slow_rate", slow_rate, "share of the critic in its slow copy at every update",
          Between(0, 1).OpenBelow());
  }
};

// R_t = r_{t+1} + c_{t+1} ((1 - l_{t+1}) b_{t+1} + l_{t+1} R_{t+1}),  l_t = lambda (1 - last_t),
// and R = b at the last time. Time by time, `columns` of each: the inputs are those of the times
// t + 1, in order. Without `last` no episode ends.
void LambdaReturns(std::span<const float> reward, std::span<const float> continues,
                   std::span<const float> last, std::span<const float> bootstrap, double lambda,
                   int columns, std::span<float> returns);

// S = max(1, P95 - P5), each percentile a mean that follows slowly.
class ReturnScale {
 public:
  // Reorders the returns.
  void Update(std::span<float> returns);
  double scale() const;
  void Visit(const Archive& state);

 private:
  double low_ = 0.0;
  double high_ = 0.0;
};

// All networks but the slow critic. Tensors are in two buffers: `model`, and `critic` with a slowly
// following target.
struct DreamerNetworks {
  DreamerNetworks(const RssmSizes& sizes, const DreamerConfig& config, int policy_outputs,
                  Parameters& model, Parameters& critic_buffer, Rng rng);

  Rssm rssm;
  DenseNet decoder, reward, continues, actor, critic;
};

class Dreamer : public Agent {
 public:
  // UserError on impossible settings.
  Dreamer(const EnvSpec& spec, const DreamerConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override;
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  FeedForwardPolicy ExportPolicy() const override;
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Visit(const Archive& state) override;

  // One update on given records, config.sequence_length + 1 of each sequence: the first one only
  // says where to start from. Writes what it infers to `latents`, as features of all but the first.
  void UpdateOn(const RecordBatch& batch, Eigen::MatrixXf& latents);
  RecordBatch MakeRecords() const;

  // World model, heads and actor; the critic.
  Parameters& model() { return model_; }
  Parameters& critic() { return critic_; }

 private:
  // What is remembered of an episode: the state of the world as inferred, and the last action as
  // the world model takes it.
  struct Belief : Carry {
    explicit Belief(const RssmSizes& sizes)
        : h(Eigen::VectorXf::Zero(sizes.deter)),
          z(Eigen::VectorXf::Zero(sizes.latent())),
          action(Eigen::VectorXf::Zero(sizes.action)) {}
    void Begin() override;
    void Visit(const Archive& state) override;

    Eigen::VectorXf h, z, action;
  };

  // An observation and an action for some episodes at once.
  struct Acting {
    StaticGraph graph;
    Node observation, h, z, action, z_noise, noise;  // inputs; h, z and action of the step before
    Node next_h;
    struct Choice {
      Node z, action;
    };
    Choice sampled;  // while exploring
    Choice likely;   // the most likely state of the world, and the most likely action in it
  };

  // Everything of an update; columns time by time.
  struct Learning {
    StaticGraph graph;
    // inputs
    Node observation, action, keep, h, z, reward, terminal, z_noise;
    std::vector<Node> imagined_z_noise, action_noise;
    Node advantage, weight, target, replay_weight, replay_target;
    // results
    Node next_h, next_z;
    Node imagined_reward, imagined_continue, value;
    Node reconstruction_loss, reward_loss, continue_loss, dynamics_loss, representation_loss, kl;
    Node actor_loss, critic_loss, replay_critic_loss, entropy, loss;
  };

  // A policy's head as a distribution.
  struct Policy {
    Node mean, deviation;  // of continuous actions
    Node probability;      // of discrete ones
  };
  Policy PolicyOf(StaticGraph& g, Node head) const;
  Node SampleOf(StaticGraph& g, const Policy& policy, Node noise) const;
  Node LogProbability(StaticGraph& g, const Policy& policy, Node action) const;
  Node Entropy(StaticGraph& g, const Policy& policy) const;
  // An input for the random part of an action: normal, or uniform for a category.
  Node NoiseInput(StaticGraph& g, int columns) const;

  Acting BuildActing(int turns);
  Learning BuildLearning();
  void AddWorldModel(Learning& l);
  void AddImagination(Learning& l, Node h, Node z, Node features);

  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  // What the networks see of observations.
  void See(const ConstMatrixRef& observations, MatrixRef out) const;
  void FillInputs(const RecordBatch& batch);
  void FillTargets(const RecordBatch& batch);
  void EncodeAction(const Action& action, Eigen::Ref<Eigen::VectorXf> column) const;
  bool IsDiscrete() const { return action_spec_.kind == ActionKind::kDiscrete; }

  DreamerConfig config_;
  ActionSpec action_spec_;
  Replay replay_;
  Rng replay_rng_, noise_rng_;

  Parameters model_, critic_;
  DreamerNetworks nets_;
  TwoHotBins bins_;
  RunningNormalizer observation_statistics_;
  ReturnScale scale_;
  std::int64_t steps_ = 0;
  std::int64_t updates_ = 0;
  std::int64_t due_ = 0;  // replayed steps that are owed

  // workspace
  std::array<Acting, 3> acting_;  // for 1, 8 and kMaxTurns turns
  Learning learning_;
  RecordBatch batch_;
  Eigen::MatrixXf latents_;
  Eigen::VectorXf observation_;
  std::vector<float> returns_, sorted_returns_, replay_continues_, replay_returns_;
  std::vector<float> action_, latent_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DREAMER_DREAMER_H_
