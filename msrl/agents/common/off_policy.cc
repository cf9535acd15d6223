#include "msrl/agents/common/off_policy.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

std::span<const double> AsSpan(const EnvView& view) {
  return {view.data(), static_cast<std::size_t>(view.size())};
}

std::optional<MatrixFeatures> MakeFeatures(const std::optional<BranchSettings>& branch) {
  if (!branch) return std::nullopt;
  return MatrixFeatures(branch->lift, branch->features);
}

ReplayConfig MakeReplayConfig(const EnvSpec& spec, const OffPolicyConfig& config,
                              const std::optional<BranchSettings>& branch, int feature_count) {
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  return {.capacity = config.replay_size,
          .observation_size = spec.observation_size,
          .action_size = discrete ? 1 : spec.action.size,
          .feature_size = feature_count,
          .lift = branch ? branch->lift : nullptr,
          .one_hot_code = discrete,
          .code_size = discrete                   ? 0
                       : spec.action_code.empty() ? std::min(spec.action.size, kActionCodeSize)
                                                  : kActionCodeSize};
}

// With another goal, every step of the prefix has another reward and other slots, so that Z would
// have to be accumulated anew for every sample.
std::optional<Hindsight> MakeHindsight(const EnvSpec& spec, const OffPolicyConfig& config,
                                       const std::optional<BranchSettings>& branch,
                                       std::uint64_t seed) {
  if (config.her == 0) return std::nullopt;
  if (branch) {
    throw UserError(
        "her: the critic sees Z, which is of the goal that was pursued; set matrix=false");
  }
  return Hindsight(spec, config.her, config.replay_size, seed);
}

}  // namespace

OffPolicyMemory::OffPolicyMemory(const EnvSpec& spec, const OffPolicyConfig& config,
                                 const std::optional<BranchSettings>& branch, std::uint64_t seed)
    : config_(config),
      action_spec_(spec.action),
      features_(MakeFeatures(branch)),
      replay_(MakeReplayConfig(spec, config, branch, features_ ? features_->size() : 0)),
      hindsight_(MakeHindsight(spec, config, branch, seed)),
      batch_(replay_.MakeBatch(config.batch_size)),
      rng_(seed, "replay"),
      action_(static_cast<std::size_t>(replay_.config().action_size)),
      features_before_(static_cast<std::size_t>(replay_.config().feature_size)),
      features_after_(features_before_.size()) {}

void OffPolicyMemory::Observe(const Experience& experience) {
  if (action_spec_.kind == ActionKind::kDiscrete) {
    action_[0] = static_cast<float>(experience.action.index());
  } else {
    std::ranges::transform(experience.action.values(), action_.begin(),
                           [](double value) { return static_cast<float>(value); });
  }
  if (features_) {
    features_->Compute(experience.before.matrix, features_before_);
    features_->Compute(experience.after.matrix, features_after_);
  }
  replay_.Add({.before = {.observation = AsSpan(experience.before.observation),
                          .features = features_before_,
                          .geometry = AsSpan(experience.before.geometry),
                          .matrix = &experience.before.matrix},
               .action = action_,
               .reward = experience.scaled_reward,
               .terminated = experience.terminated,
               .truncated = experience.truncated,
               .after = {.observation = AsSpan(experience.after.observation),
                         .features = features_after_,
                         .geometry = AsSpan(experience.after.geometry),
                         .matrix = &experience.after.matrix},
               .code = experience.action_code,
               .lift_reward = experience.scaled_reward});
  if (hindsight_) hindsight_->Observe(experience, replay_);
  ++steps_;
}

void OffPolicyMemory::BeginLessons(double weight) {
  MSRL_CHECK_EQ(steps_, 0);
  lessons_.emplace(weight, config_.replay_size);
  batch_.lesson.setZero(batch_.size());
}

void OffPolicyMemory::ComputeFeatures(const Situation& situation, std::span<float> features) {
  if (features_) features_->Compute(situation.matrix, features);
}

const ReplayBatch& OffPolicyMemory::Sample() {
  replay_.Sample(rng_, batch_);
  if (hindsight_) hindsight_->Relabel(replay_, batch_);
  if (lessons_) lessons_->Weigh(batch_);
  return batch_;
}

void OffPolicyMemory::Visit(const Archive& state) {
  replay_.Visit(state.Child("replay"));
  if (hindsight_) hindsight_->Visit(state.Child("hindsight"), replay_);
  if (lessons_) lessons_->Visit(state.Child("lessons"), replay_);
  state.Random("random", rng_);
  state.Int("steps", steps_);
}

}  // namespace msrl
