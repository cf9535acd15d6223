// DreamerV3 (Hafner et al. 2023) with state input: a recurrent world model with categorical
// latents, and an actor and a critic that learn in what it imagines. docs/agents/dreamer.md
#ifndef MSRL_AGENTS_DREAMER_DREAMER_H_
#define MSRL_AGENTS_DREAMER_DREAMER_H_

#include <array>
#include <string>
#include <vector>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/agents/common/networks.h"
#include "msrl/agents/dreamer/world_model.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/config.h"
#include "msrl/memory/replay.h"
#include "msrl/nn/running_normalizer.h"

namespace msrl {

enum class DreamerPreset { kCompact, kReference };
constexpr auto EnumNames(DreamerPreset /*type*/) { return Names("compact", "reference"); }

struct DreamerConfig : WorldShape, WorldWeights {
  DreamerPreset preset = DreamerPreset::kCompact;
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
  double replay_value_weight = 0.3;
  double slow_rate = 0.02;
  bool aligned = false;
  double early_rate = 0.3;
  bool frozen = false;

  static DreamerConfig Of(DreamerPreset preset);

  template <typename V>
  void Fields(V&& visit) {
    const DreamerPreset before = preset;
    visit("preset", preset, "sizes and schedule that the other settings start from");
    if (preset != before) *this = Of(preset);
    WorldShape::Fields(visit);
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
    WorldWeights::Fields(visit);
    visit("replay_value_weight", replay_value_weight, "weight of the critic's loss on real rewards",
          NotNegative());
    visit("slow_rate", slow_rate, "share of the critic in its slow copy at every update",
          Between(0, 1).OpenBelow());
    visit("aligned", aligned, "the world model is over what all tasks share, as a pretrained one");
    visit("early_rate", early_rate,
          "step size of such a model in the first 2 random_steps steps, as a share", NotNegative());
    visit("frozen", frozen, "such a model stays as it is");
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

// All networks but the slow critic. Tensors of the actor are with the world model's heads, those of
// the critic in a buffer with a slowly following target.
struct DreamerNetworks {
  DreamerNetworks(const WorldModelSpec& spec, int policy_outputs, Parameters& world_buffer,
                  Parameters& model, Parameters& critic_buffer, Rng rng);

  WorldModel world;
  DenseNet actor, critic;
};

// What the agent must be set to, to hold such a world model.
std::vector<std::string> SettingsForWorld(const ArtefactHeader& header);

class Dreamer : public Agent {
 public:
  // UserError on impossible settings.
  Dreamer(const EnvSpec& spec, const DreamerConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override;
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  // Takes the world model over, but for its rewards: encoder, recurrent model, decoder, continue.
  void Initialise(const Artefact& artefact) override;
  FeedForwardPolicy ExportPolicy() const override;
  KeptExperience Kept() const override { return {&replay_}; }
  void DrainMetrics(MetricSink& sink) override { metrics_.Drain(sink); }
  void Visit(const Archive& state) override;

  // One update on given records, config.sequence_length + 1 of each sequence: the first one only
  // says where to start from. Writes what it infers to `latents`, as features of all but the first.
  void UpdateOn(const RecordBatch& batch, Eigen::MatrixXf& latents);
  RecordBatch MakeRecords() const;

  // World model, heads and actor; the critic. With `aligned`, what a pretrained model hands over is
  // in `world` and no part of `model`.
  Parameters& model() { return model_; }
  Parameters& world() { return world_; }
  Parameters& critic() { return critic_; }

 private:
  // What is remembered of an episode: the state of the world as inferred, the last action as the
  // world model takes it, and which of the slots that all tasks share are alive.
  struct Belief : Carry {
    Belief(const WorldModelSpec& spec, const ChannelFacts& facts)
        : h(Eigen::VectorXf::Zero(spec.sizes.deter)),
          z(Eigen::VectorXf::Zero(spec.sizes.latent())),
          action(Eigen::VectorXf::Zero(spec.actuators())),
          aligned(spec.aligned),
          writer(facts) {}
    void Begin() override;
    void Visit(const Archive& state) override;

    Eigen::VectorXf h, z, action;
    bool aligned;
    ChannelWriter writer;
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
  struct Learning : WorldPass {
    StaticGraph graph;
    // inputs
    std::vector<Node> imagined_z_noise, action_noise;
    Node advantage, weight, target, replay_weight, replay_target;
    // results
    Node imagined_reward, imagined_continue, value;
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
  void AddImagination(Learning& l, Node h, Node z, Node features);

  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  // What the networks are given of what is seen: observations normalised.
  void Normalise(const ConstMatrixRef& seen, MatrixRef out) const;
  void FillInputs(const RecordBatch& batch);
  void FillTargets(const RecordBatch& batch);
  void EncodeAction(const Action& action, Eigen::Ref<Eigen::VectorXf> column) const;
  bool IsDiscrete() const { return action_spec_.kind == ActionKind::kDiscrete; }

  DreamerConfig config_;
  ActionSpec action_spec_;
  Replay replay_;
  Rng replay_rng_, noise_rng_;

  ChannelFacts facts_;
  Parameters model_, critic_, world_;
  DreamerNetworks nets_;
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
  std::vector<double> seen_, seen_after_;
  std::vector<float> returns_, sorted_returns_, replay_continues_, replay_returns_;
  std::vector<float> action_, latent_;
  MetricMeans metrics_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_DREAMER_DREAMER_H_
