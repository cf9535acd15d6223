#include "msrl/agents/common/off_policy.h"

#include <algorithm>
#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

std::span<const double> AsSpan(const EnvView& view) {
  return {view.data(), static_cast<std::size_t>(view.size())};
}

}  // namespace

void RequirePositive(const char* setting, double value) {
  if (!(value > 0.0))
    throw UserError(StrCat("setting '", setting, "' must be positive, got ", value));
}

void RequireValid(const OffPolicyConfig& config) {
  RequirePositive("batch_size", config.batch_size);
  RequirePositive("updates_per_step", config.updates_per_step);
  RequirePositive("random_steps", static_cast<double>(config.random_steps));
  if (config.replay_size < 2) {
    throw UserError(StrCat("setting 'replay_size' must be at least 2, got ", config.replay_size));
  }
  if (!(config.gamma >= 0.0 && config.gamma < 1.0)) {
    throw UserError(StrCat("setting 'gamma' must be in [0, 1), got ", config.gamma));
  }
  if (!(config.tau > 0.0 && config.tau <= 1.0)) {
    throw UserError(StrCat("setting 'tau' must be in (0, 1], got ", config.tau));
  }
}

OffPolicyMemory::OffPolicyMemory(const EnvSpec& spec, const OffPolicyConfig& config,
                                 std::uint64_t seed)
    : config_(config),
      action_spec_(spec.action),
      replay_({.capacity = config.replay_size,
               .observation_size = spec.observation_size,
               .action_size = spec.action.kind == ActionKind::kDiscrete ? 1 : spec.action.size}),
      batch_(replay_.MakeBatch(config.batch_size)),
      rng_(seed, "replay"),
      action_(static_cast<std::size_t>(replay_.config().action_size)) {}

void OffPolicyMemory::Observe(const Experience& experience) {
  if (action_spec_.kind == ActionKind::kDiscrete) {
    action_[0] = static_cast<float>(experience.action.index());
  } else {
    std::ranges::transform(experience.action.values(), action_.begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  replay_.Add({.before = {.observation = AsSpan(experience.before.observation)},
               .action = action_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = AsSpan(experience.after.observation)}});
  ++steps_;
}

const ReplayBatch& OffPolicyMemory::Sample() {
  replay_.Sample(rng_, batch_);
  return batch_;
}

void OffPolicyMemory::Save(const StateWriter& state) const {
  replay_.Save(state.Child("replay"));
  state.Random("random", rng_);
  state.Int("steps", steps_);
}

void OffPolicyMemory::Load(const StateReader& state) {
  replay_.Load(state.Child("replay"));
  rng_ = state.Random("random");
  steps_ = state.Int("steps", 0, std::numeric_limits<std::int64_t>::max());
}

}  // namespace msrl
