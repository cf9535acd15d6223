// What agents share that learn from a replay: settings, the replay itself, and when to learn.
#ifndef MSRL_AGENTS_COMMON_OFF_POLICY_H_
#define MSRL_AGENTS_COMMON_OFF_POLICY_H_

#include <optional>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/agents/common/critic.h"
#include "msrl/agents/common/hindsight.h"
#include "msrl/agents/common/lessons.h"
#include "msrl/core/config.h"
#include "msrl/memory/replay.h"

namespace msrl {

struct OffPolicyConfig {
  int hidden_layers = 2;
  int hidden_width = 256;
  int batch_size = 256;
  std::int64_t replay_size = 1'000'000;
  std::int64_t random_steps = 1000;
  int updates_per_step = 1;
  double gamma = 0.99;
  double tau = 0.005;
  bool critic_layer_norm = false;
  double initial_value = 0.0;
  int her = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("hidden_layers", hidden_layers, "hidden layers of every network",
          Between(0, kMaxHiddenLayers));
    visit("hidden_width", hidden_width, "width of the hidden layers", Between(1, kMaxHiddenWidth));
    visit("batch_size", batch_size, "transitions per update", Positive());
    visit("replay_size", replay_size, "states kept in the replay", AtLeast(2));
    visit("random_steps", random_steps, "uniformly random steps before the first update",
          Positive());
    visit("updates_per_step", updates_per_step, "updates per environment step", Positive());
    visit("gamma", gamma, "discount", Between(0, 1).OpenAbove());
    visit("tau", tau, "share of the network in its target at every target update",
          Between(0, 1).OpenBelow());
    visit("critic_layer_norm", critic_layer_norm, "normalise the hidden layers of the critics");
    visit("initial_value", initial_value, "added to every Q before anything is learned",
          AnyNumber());
    visit("her", her,
          "samples that are given a goal which their episode reached later, for each one that is "
          "not; 0: none",
          Between(0, 1000));
  }
};

// The replay of an agent that looks at observations, and at features of Z if its critic has a
// branch; the matrices can be rebuilt then. Rewards are in the normalised unit
// (reward / reward_scale), as all values are.
class OffPolicyMemory {
 public:
  // UserError if there is no hindsight where the settings want it.
  OffPolicyMemory(const EnvSpec& spec, const OffPolicyConfig& config,
                  const std::optional<BranchSettings>& branch, std::uint64_t seed);

  void Observe(const Experience& experience);
  // From now on the policy is taught (Lessons); before the first step.
  void BeginLessons(double weight);
  // Whether the step that was last observed is a lesson; said after every step.
  void NoteLesson(bool taught) { lessons_->Observe(replay_, taught); }
  bool IsWarmingUp() const { return steps_ < config_.random_steps; }
  // Whether the last step was the last random one.
  bool WarmUpEnds() const { return steps_ == config_.random_steps; }
  // Updates that are due after a step.
  int UpdatesDue() const { return IsWarmingUp() ? 0 : config_.updates_per_step; }
  // A new batch, with goals of hindsight if the settings say so, and with lessons if there are any;
  // valid until the next call.
  const ReplayBatch& Sample();

  // Features of Z; nothing without a branch.
  void ComputeFeatures(const Situation& situation, std::span<float> features);

  std::int64_t steps() const { return steps_; }
  const Replay& replay() const { return replay_; }
  void Visit(const Archive& state);

 private:
  OffPolicyConfig config_;
  ActionSpec action_spec_;
  std::optional<MatrixFeatures> features_;
  Replay replay_;
  std::optional<Hindsight> hindsight_;
  std::optional<Lessons> lessons_;
  ReplayBatch batch_;
  Rng rng_;
  std::vector<float> action_, features_before_, features_after_;
  std::int64_t steps_ = 0;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_OFF_POLICY_H_
