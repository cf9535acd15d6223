#include "msrl/env/instance.h"

#include <algorithm>
#include <cmath>

namespace msrl {
bool InSplit(std::string_view layout, Split split) {
  // fold all bits into the parity: the lowest bit of FNV-1a alone is only the parity of the bytes
  std::uint64_t hash = StableHash(layout);
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdull;
  hash ^= hash >> 33;
  return ((hash & 1) == 0) == (split == Split::kTrain);
}

double RewardRule::Goal(double distance, double progress, bool arrived) const {
  switch (style) {
    case RewardStyle::kDistance:
      return -0.5 * cost * distance;
    case RewardStyle::kSparse:
      return arrived ? 1.0 : 0.0;
    case RewardStyle::kTime:
      return arrived ? 0.0 : -cost;
    case RewardStyle::kProgress:
      return std::clamp(0.5 * progress, -1.0, 1.0) + (arrived ? 0.5 : 0.0);
    default:
      MSRL_CHECK(false, "not a goal style: ", EnumName(style));
      return 0.0;
  }
}

double RewardRule::Velocity(double speed, double survival) const {
  const double along = cost * std::clamp(speed, -1.0, 1.0);
  return style == RewardStyle::kSurvival ? 0.5 * along + 0.5 : along + survival;
}

RewardRule SampleRewardRule(const InstanceOptions& options, std::span<const RewardStyle> styles,
                            Rng& rng) {
  RewardRule rule;
  // draw even what is pinned: pinning one option leaves the others as they were
  rule.style = styles[static_cast<std::size_t>(rng.Index(std::ssize(styles)))];
  for (const RewardStyle style : styles) {
    if (options.reward == style) rule.style = style;
  }
  rule.gain = rng.Uniform(0.5, 1.0);
  rule.cost = rng.Uniform(0.3, 1.0);
  rule.stop_at_goal = rng.Bernoulli(0.5) && rule.style == RewardStyle::kTime;
  const double kind = rng.Uniform();
  const double low_cost = rng.Uniform(0.0, 0.1);
  const double high_cost = rng.Uniform(0.1, 1.0);
  rule.action_cost = kind < 0.5 ? 0.0 : kind < 0.8 ? low_cost : high_cost;
  if (options.action_cost >= 0.0) rule.action_cost = options.action_cost;
  return rule;
}

int SampleHorizon(const InstanceOptions& options, int low, int high, Rng& rng) {
  const int sampled = RandomInt(low, high, rng);
  return options.horizon > 0 ? options.horizon : sampled;
}

double SampleScale(const InstanceOptions& options, Rng& rng) {
  const double sampled = rng.Uniform(0.6, 1.4);
  return options.scale > 0.0 ? options.scale : sampled;
}

std::uint8_t SampleSlotMask(const InstanceOptions& options, Rng& rng) {
  const bool dead = rng.Bernoulli(options.dead_slots);
  const auto mask = static_cast<std::uint8_t>(rng.NextU32() & 0xff);
  return dead ? mask : 0xff;
}

double SampleOnGrid(double low, double high, double step, Rng& rng) {
  const auto steps = static_cast<int>(std::lround((high - low) / step));
  return low + step * RandomInt(0, steps, rng);
}

}  // namespace msrl
