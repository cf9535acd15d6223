// The agent that all value and representation baselines have in common: soft actor-critic with two
// slots for what a transferred module (value_module.h) says of a state, or of it and an action.
//
//   feature slot  z = norm(W z_raw), beside o in the policy and in both critics
//   value slot    Q_i(o, a) = kappa V(x[, u]) + beta + R_i(o, z, a), with R = 0 at the start
//
// docs/agents/host.md has all formulas.
#ifndef MSRL_AGENTS_HOST_HOST_H_
#define MSRL_AGENTS_HOST_HOST_H_

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/agents/common/networks.h"
#include "msrl/agents/host/value_module.h"
#include "msrl/core/config.h"
#include "msrl/memory/replay.h"
#include "msrl/nn/squashed_gaussian.h"

namespace msrl {

struct HostConfig {
  int hidden_layers = 2;
  int hidden_width = 128;
  int slot_size = 32;
  int batch_size = 256;
  std::int64_t replay_size = 1'000'000;
  std::int64_t random_steps = 1000;
  int updates_per_step = 1;
  double gamma = 0.99;
  double tau = 0.005;
  double actor_learning_rate = 3e-4;
  double critic_learning_rate = 1e-3;
  double alpha_learning_rate = 1e-3;
  double initial_alpha = 0.1;
  double target_entropy_per_action = -1.0;
  bool fine_tune = true;
  double module_learning_rate = 3e-5;
  int module_every = 4;
  int module_windows = 32;
  double module_lambda = 0.95;
  int encode_every = 5000;
  int calibration_episodes = 10;

  template <typename V>
  void Fields(V&& visit) {
    visit("hidden_layers", hidden_layers, "hidden layers of policy and critics",
          Between(0, kMaxHiddenLayers));
    visit("hidden_width", hidden_width, "width of the hidden layers", Between(1, kMaxHiddenWidth));
    visit("slot_size", slot_size, "numbers of z", Between(2, kMaxHiddenWidth));
    visit("batch_size", batch_size, "transitions per update", Positive());
    visit("replay_size", replay_size, "states kept in the replay", AtLeast(2));
    visit("random_steps", random_steps,
          "W: uniformly random steps before the first update; the module stays as it is for as "
          "many more",
          Positive());
    visit("updates_per_step", updates_per_step, "updates per environment step", Positive());
    visit("gamma", gamma, "discount", Between(0, 1).OpenAbove());
    visit("tau", tau, "share of the critics in their targets at every update",
          Between(0, 1).OpenBelow());
    visit("actor_learning_rate", actor_learning_rate, "Adam step size of the policy", Positive());
    visit("critic_learning_rate", critic_learning_rate, "Adam step size of critics and W",
          Positive());
    visit("alpha_learning_rate", alpha_learning_rate, "Adam step size of log alpha", Positive());
    visit("initial_alpha", initial_alpha, "temperature at the start (rewards are normalised)",
          Positive());
    visit("target_entropy_per_action", target_entropy_per_action,
          "wanted entropy of the policy, times the number of action dimensions", AnyNumber());
    visit("fine_tune", fine_tune, "whether the module learns in the target; false: frozen");
    visit("module_learning_rate", module_learning_rate, "Adam step size of the module", Positive());
    visit("module_every", module_every, "updates of the critics per update of the module",
          Positive());
    visit("module_windows", module_windows, "windows of 16 states per update of the module",
          Between(1, 4096));
    visit("module_lambda", module_lambda, "of the returns that V is taught", Between(0, 1));
    visit("encode_every", encode_every,
          "steps after which all kept states are read anew by the module", Positive());
    visit("calibration_episodes", calibration_episodes,
          "random episodes that kappa needs; with fewer it is 0", Positive());
  }
};

// How V is put into the target's units: G ~ kappa V + beta.
struct Calibration {
  double kappa = 0.0;
  double beta = 0.0;
  double r2 = 0.0;     // of G; 0 if there were too few episodes
  double scale = 1.0;  // s_T: P95 - P5 of G, at least 1e-3
  int episodes = 0;
};
// Least squares with kappa cut to [0, 2 scale]; nothing (kappa = beta = 0) if it explains nothing.
// `g` and `v` have one number per state. Sorts g.
Calibration Calibrate(std::span<float> g, std::span<const float> v, int episodes,
                      int wanted_episodes);

class Host : public Agent {
 public:
  // `expected` is the header of artefacts that the module can start from.
  Host(const EnvSpec& spec, const HostConfig& config, std::uint64_t seed,
       std::unique_ptr<ValueModule> module, ArtefactHeader expected);

  std::int64_t parameter_count() const override;
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  void Initialise(const Artefact& artefact) override;
  FeedForwardPolicy ExportPolicy() const override;
  KeptExperience Kept() const override { return {&replay_}; }
  void DrainMetrics(MetricSink& sink) override {
    metrics_.Drain(sink);
    module_->DrainMetrics(sink);
  }
  void Visit(const Archive& state) override;

  // One update of policy and critics on config.batch_size transitions; features are
  // [V; z_raw; channels].
  void UpdateOn(const ReplayBatch& batch);
  // One update of the module on config.module_windows sequences of kTrainingLength steps.
  void FineTuneOn(const SequenceBatch& batch);
  // What a module that values states is taught about those of sequences, in its own unit.
  const Eigen::RowVectorXf& LabelsOf(const SequenceBatch& batch);

  int feature_size() const { return module_->kept_size(); }
  ValueModule& module() { return *module_; }
  Parameters& actor() { return actor_; }
  Parameters& critic() { return critic_; }
  const Calibration& calibration() const { return calibration_; }
  void set_calibration(const Calibration& calibration) { calibration_ = calibration; }
  double alpha() const;

 private:
  // What is remembered of an episode: the channels of its last states, and what the module said of
  // the last of them.
  struct Memory : Carry {
    Memory(const ChannelFacts& facts, int context, int feature_size)
        : writer(facts), window(kChannels, context), features(feature_size) {
      Begin();
    }
    void Begin() override;
    void Visit(const Archive& state) override;

    ChannelWriter writer;
    Eigen::MatrixXf window;    // the last `states` of them, oldest first
    Eigen::VectorXf features;  // of the newest
    int states = 0;
    int step = -1;                                   // of the newest; -1: none
    std::array<double, kActionCodeSize + 1> sums{};  // of action codes and rewards so far
  };

  // o, z_raw and an action through networks; columns are samples.
  struct PolicyGraph {
    StaticGraph graph;
    Node observation, raw, head;
  };
  struct CriticGraph {
    StaticGraph graph;
    Node observation, raw, action, q;
    Node y, loss;  // of the one that learns
  };
  // The policy without noise, tanh(mu), and what it is worth: min_i R_i(o, z, tanh(mu)).
  struct StateGraph {
    StaticGraph graph;
    Node observation, raw, mode, value;
  };
  // What the value slot holds: V of kept states and actions.
  struct ValueGraph {
    StaticGraph graph;
    Node kept, action, value;
  };

  Node SlotOf(StaticGraph& g, Node raw, ParameterUse use) const;
  PolicyGraph BuildPolicy(int columns, ParameterUse use) const;
  CriticGraph BuildCritic(int columns, ParameterUse use) const;
  StateGraph BuildStates(int columns) const;
  ValueGraph BuildValue(int columns, ParameterUse use) const;

  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  bool IsWarmingUp() const { return steps_ < config_.random_steps; }
  // Draws whether the next action is chosen by V.
  bool IsGuided(Rng& rng) const;
  // The action of a policy that was asked, or what V prefers among some such and some that the
  // module proposes; in act_action_.
  void SampleAction(Rng& rng);
  void ChooseByValue(Rng& rng, const Memory& memory);
  // Reads the situation into the memory, unless it is there already.
  void See(const Situation& situation, Memory& memory);
  // Reads all kept states anew.
  void EncodeReplay();
  void CalibrateOnReplay();
  // V of all kept steps, by row from the first on; 0 where there was none.
  std::vector<float> ValuesOfSteps();
  // V of features and actions, one column each; zeros as long as it has no say.
  void ReadValues(ValueGraph& v, const Eigen::MatrixXf& features, const Eigen::MatrixXf& action,
                  Eigen::RowVectorXf& values) const;
  // V in the target's units.
  float ValueOf(float v) const;
  // The action channels of actions, one column each.
  void WriteActions(const Eigen::Ref<const Eigen::MatrixXf>& action, StridedMap channels) const;
  // What a module that values actions is taught.
  void WriteSteps(const SequenceBatch& batch);
  void UpdateCritic(const ReplayBatch& batch);
  void UpdateActor(const ReplayBatch& batch);
  void UpdateAlpha();

  HostConfig config_;
  ActionSpec action_spec_;
  ChannelFacts facts_;
  Index code_at_, reward_at_, one_at_;  // where Z has action codes, rewards and 1
  int n_, m_;
  Eigen::MatrixXf action_slots_;  // of the code, by dimensions
  ArtefactHeader expected_;
  std::unique_ptr<ValueModule> module_;
  Replay replay_;
  Rng replay_rng_, noise_rng_;

  Parameters actor_, critic_;
  MlpParameters actor_net_, critic_net_;
  LinearParameters projection_;  // W
  Adam alpha_adam_;
  FloatBuffer log_alpha_;  // one number
  Calibration calibration_;
  std::int64_t steps_ = 0;
  std::int64_t updates_ = 0;
  bool episode_open_ = false;  // the newest kept state is not the last of its episode

  // workspace
  PolicyGraph act_, policy_;
  CriticGraph learning_, valuing_, target_;
  StateGraph states_;
  ValueGraph value_, next_value_, value_of_candidates_, value_of_rows_;
  ReadingGraph reading_one_, reading_many_;
  TeachingGraph teaching_;
  SquashedGaussian policy_head_, act_head_;
  ReplayBatch batch_;
  ReplayBatch one_, rows_;
  SequenceBatch sequences_;
  FloatBuffer log_prob_;
  Eigen::MatrixXf noise_, action_, d_head_, d_q_, d_action_, act_noise_, act_action_;
  Eigen::MatrixXf candidates_, proposals_, candidate_features_;
  Eigen::RowVectorXf y_, v_, next_v_, d_v_, candidate_v_, labels_;
  Eigen::VectorXf before_;
  std::vector<float> action_values_;
  MetricMeans metrics_;
};

// The host of one kind of module. Its settings are the host's, those of the module's shape and
// those of its use at a target.
template <typename Module>
struct HostConfigFor : HostConfig {
  typename Module::Shape shape;
  typename Module::Settings use;

  template <typename V>
  void Fields(V&& visit) {
    HostConfig::Fields(visit);
    shape.Fields(visit);
    use.Fields(visit);
  }
};

template <typename Module>
class HostOf : public Host {
 public:
  HostOf(const EnvSpec& spec, const HostConfigFor<Module>& config, std::uint64_t seed)
      : Host(spec, RequireInRange(config), seed, MakeModule(config, seed),
             ModuleHeader(Module::kKind, config.shape, {})) {}

 private:
  static std::unique_ptr<ValueModule> MakeModule(const HostConfigFor<Module>& config,
                                                 std::uint64_t seed) {
    Rng rng(seed, "module");
    auto module =
        std::make_unique<Module>(config.shape, ParameterOptions{.adam = {.max_norm = 10.0}}, rng);
    module->Configure(config.use);
    return module;
  }
};

}  // namespace msrl

#endif  // MSRL_AGENTS_HOST_HOST_H_
