// TD-MPC2 (Hansen et al. 2024): planning in a latent model that is learned from its rewards and
// values, with a policy that proposes plans. docs/agents/tdmpc.md
#ifndef MSRL_AGENTS_TDMPC_TDMPC_H_
#define MSRL_AGENTS_TDMPC_TDMPC_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/agents/common/aligned_channels.h"
#include "msrl/agents/common/networks.h"
#include "msrl/agents/tdmpc/latent_model.h"
#include "msrl/agents/tdmpc/learner.h"
#include "msrl/agents/tdmpc/mppi.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/config.h"
#include "msrl/memory/replay.h"

namespace msrl {

enum class TdMpcPreset { kCompact, kReference };
constexpr auto EnumNames(TdMpcPreset) { return Names("compact", "reference"); }

// What is taken over of a pretrained model: all of it, or h and d only, where rewards mean
// something else.
enum class ModelCopy { kAll, kDynamics };
constexpr auto EnumNames(ModelCopy) { return Names("all", "dynamics"); }

struct TdMpcConfig : LatentWeights {
  TdMpcPreset preset = TdMpcPreset::kCompact;
  int encoder_width = 128;
  int latent_groups = 8;
  int model_width = 128;
  int q_count = 3;
  int bins = 101;
  bool termination = true;
  int batch_size = 128;
  std::int64_t replay_size = 1'000'000;
  std::int64_t random_steps = 1000;
  int first_updates = 500;
  int update_every = 2;
  double gamma = 0.99;
  ConsistencyTarget consistency_target = ConsistencyTarget::kEncoder;
  PairValue pair_value = PairValue::kMean;
  bool plan = true;
  MppiSettings mppi;
  bool aligned = false;
  int task_size = 16;
  ModelCopy copy = ModelCopy::kAll;
  bool frozen = false;

  static TdMpcConfig Of(TdMpcPreset preset);

  template <typename V>
  void Fields(V&& visit) {
    const TdMpcPreset before = preset;
    visit("preset", preset, "sizes for one core, or those of the paper; other settings change it");
    if (preset != before) *this = Of(preset);
    visit("encoder_width", encoder_width, "width of the encoder's hidden layer",
          Between(1, kMaxHiddenWidth));
    visit("latent_groups", latent_groups, "groups of eight numbers that a latent state has",
          Between(1, 1024));
    visit("model_width", model_width, "width of the two hidden layers of all other networks",
          Between(1, kMaxHiddenWidth));
    visit("q_count", q_count, "value networks; targets and plans ask two of them", Between(2, 64));
    visit("bins", bins, "points that rewards and values are predicted on; 0: as plain numbers",
          Between(2, 4096).Or(0));
    visit("termination", termination, "whether the model predicts that episodes terminate");
    visit("batch_size", batch_size, "sequences per update", Positive());
    visit("replay_size", replay_size, "states kept in the replay", AtLeast(2));
    visit("random_steps", random_steps, "uniformly random steps before the first update",
          Positive());
    visit("first_updates", first_updates, "updates after the random steps", NotNegative());
    visit("update_every", update_every, "steps per update after that", AtLeast(1));
    visit("gamma", gamma, "discount; 0: by the length of episodes", Between(0, 1).OpenAbove());
    LatentWeights::Fields(visit);
    visit("consistency_target", consistency_target, "whose state a prediction is held against");
    visit("pair_value", pair_value, "what two values are worth to the policy and to a plan");
    visit("plan", plan, "false: actions are the policy's");
    mppi.Fields(visit);
    visit("aligned", aligned, "the model is over what all tasks share, as a pretrained one is");
    visit("task_size", task_size, "of the vector that tells such a model its task",
          Between(1, kMaxHiddenWidth));
    visit("copy", copy, "what is taken over of a pretrained model");
    visit("frozen", frozen, "encoder and dynamics stay as they are");
  }
};

// TD-MPC2's discount for episodes of this length.
double DiscountOfLength(int steps);

// What the agent must be set to, to hold such a model.
std::vector<std::string> SettingsForModel(const ArtefactHeader& header);

class TdMpc : public Agent {
 public:
  // UserError on impossible settings.
  TdMpc(const EnvSpec& spec, const TdMpcConfig& config, std::uint64_t seed);

  std::int64_t parameter_count() const override;
  std::unique_ptr<Carry> MakeCarry() const override;
  void Observe(const Experience& experience, Carry& carry) override;
  void Update() override;
  void Initialise(const Artefact& artefact) override;
  std::string TakeNotice() override { return std::exchange(notice_, {}); }
  void DrainMetrics(MetricSink& sink) override { learner_.DrainMetrics(sink); }
  FeedForwardPolicy ExportPolicy() const override;
  KeptExperience Kept() const override { return {&replay_, config_.aligned ? kStateChannels : 0}; }
  void Visit(const Archive& state) override;

  // One update on batch_size sequences of `horizon` steps.
  void UpdateOn(const SequenceBatch& batch) { learner_.UpdateOn(batch); }
  SequenceBatch MakeBatch() const { return replay_.MakeSequences(batch_size(), horizon()); }

  // The value of action sequences (m x horizon, one column per step) from an observation, as the
  // planner estimates it; `actions` has plan_samples of them, column t * plan_samples + i. The
  // noise of the policy and the two value networks are drawn from rng. With `aligned`, what all
  // tasks share is above the observation.
  std::span<const float> ValuesOfPlans(const EnvView& observation, const ConstMatrixRef& actions,
                                       Rng& rng);

  LatentModel& model() { return model_; }
  double gamma() const { return gamma_; }
  double scale() const { return learner_.scale(); }  // S
  // Scaled rewards are divided by it: 1, or with `aligned` the range of returns of random steps.
  double reward_unit() const { return reward_unit_; }

 private:
  // Of one episode: where the next plan starts, and what all tasks share of the present state.
  struct Course : Carry {
    Course(int action_size, int horizon, bool is_aligned, const ChannelFacts& facts)
        : mean(Eigen::MatrixXf::Zero(action_size, horizon)), aligned(is_aligned), writer(facts) {}
    void Begin() override { mean.setZero(); }
    void Visit(const Archive& state) override;

    Eigen::MatrixXf mean;  // m x H
    bool aligned;
    ChannelWriter writer;
  };

  // Tasks that a pretrained model knows.
  struct KnownTasks {
    void Visit(const Archive& state);

    std::string names;  // by commas
    Eigen::MatrixXf vectors;
  };

  // Its parts run on their own: the state of an observation, actions of the policy from there, the
  // value of action sequences.
  struct PlanGraph {
    PlanGraph(LatentModel& model, const TdMpcConfig& config, double gamma);

    StaticGraph graph;
    Node observation, encoded;
    Node act_noise, act, act_mode;        // in that state
    Node start, policy_noise;             // of the policy's proposals, from there
    std::vector<Node> policy_actions;     // of every step
    Node z, actions, noise, pair, value;  // of sequences of actions, from there
  };

  int batch_size() const { return config_.batch_size; }
  int horizon() const { return config_.mppi.horizon; }
  bool IsWarmingUp() const { return steps_ < config_.random_steps; }
  void ActInBatch(std::span<const Turn> turns, ActMode mode) override;
  void ActByPolicy(const Turn& turn, ActMode mode);
  void ActByPlan(const Turn& turn, ActMode mode);
  void Encode(const EnvView& observation);
  std::span<const float> PlanValues(Rng& rng);
  // After the random steps: the unit of rewards, and the known task whose rewards are nearest.
  void MeetTask();
  // Mean squared error of the rewards that the model expects in all steps of the replay.
  double RewardError();

  TdMpcConfig config_;
  ActionSpec action_spec_;
  int m_;  // size of an action
  double gamma_;
  ChannelFacts facts_;
  Replay replay_;
  Rng replay_rng_;
  std::int64_t steps_ = 0;
  double reward_unit_ = 1.0;
  KnownTasks known_;  // until one of them is chosen
  std::string notice_;

  LatentModel model_;
  LatentLearner learner_;
  PlanGraph plan_;
  Mppi mppi_;

  // workspace
  SequenceBatch batch_;
  std::vector<float> action_, values_;
  std::vector<double> seen_, seen_after_;
  Eigen::MatrixXf chosen_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_TDMPC_H_
