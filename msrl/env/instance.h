// What the source families share when they sample an instance from a seed: options, the split into
// train and held-out instances, reward styles.
#ifndef MSRL_ENV_INSTANCE_H_
#define MSRL_ENV_INSTANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/core/rng.h"
#include "msrl/core/text.h"
#include "msrl/env/spec.h"

namespace msrl {

enum class Split { kTrain, kHeldOut };
constexpr auto EnumNames(Split) { return Names("train", "held-out"); }

enum class RewardStyle {
  kDistance,  // minus the distance to the goal
  kSparse,    // 1 at the goal, else 0
  kTime,      // a price per step until the goal is reached
  kProgress,  // approach, and a bonus at the goal
  kVelocity,  // speed along a target direction, up to a target speed
  kSurvival,  // being alive, and some speed
};
constexpr auto EnumNames(RewardStyle) {
  return Names("distance", "sparse", "time", "progress", "velocity", "survival");
}

// Options of every source family. An empty value (0 or -1 for numbers) is drawn anew for each
// instance. Meanings are part of a snapshot's identity (IdentityText): they stay as they are.
struct InstanceOptions {
  Split split = Split::kTrain;
  std::optional<RewardStyle> reward;
  int horizon = 0;
  double scale = 0.0;
  double action_cost = -1.0;
  double dead_slots = 0.0;

  template <typename V>
  void Fields(V&& visit, std::span<const RewardStyle> rewards, int step_limit) {
    visit("split", split, "which half of all layouts instances come from");
    visit("reward", reward, "reward style", rewards);
    visit("horizon", horizon, "steps per episode; 0: sampled", Between(1, step_limit).Or(0));
    visit("scale", scale, "factor on positions in the geometry, 0.1 to 3; 0: sampled",
          Between(0.1, 3).Or(0));
    visit("action_cost", action_cost, "price of a full action, 0 to 1; -1: sampled",
          Between(0, 1).Or(-1));
    visit("dead_slots", dead_slots, "share of episodes in which random geometry slots read zero",
          Between(0, 1));
  }
};

// The discrete description of a layout, as text. Two instances are the same layout if and only if
// the texts are equal.
class LayoutText {
 public:
  explicit LayoutText(std::string_view kind) : text_(kind) {}
  void Add(char tag, std::int64_t value) {
    text_ += ' ';
    text_ += tag;
    text_ += std::to_string(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Every layout belongs to exactly one split, by the parity of its hash.
bool InSplit(std::string_view layout, Split split);

// Calls `draw` (which returns an instance with a `layout` text) until the layout is in the split.
// UserError if the options leave no layout there.
template <typename Draw>
auto DrawInSplit(const InstanceOptions& options, Draw draw) {
  constexpr int kAttempts = 500;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    auto instance = draw();
    if (InSplit(instance.layout, options.split)) return instance;
  }
  throw UserError(StrCat("the options leave no layout in the split '", EnumName(options.split),
                         "'; pin fewer of them or take the other split"));
}

struct RewardRule {
  RewardStyle style = RewardStyle::kDistance;
  double gain = 1.0;         // factor on the whole reward
  double cost = 1.0;         // factor on the style's own part
  double action_cost = 0.0;  // price of a full action
  bool stop_at_goal = false;

  bool HasGoal() const { return style < RewardStyle::kVelocity; }
  // Reward of the goal styles, before the action cost and without the gain. Distances in units of
  // the arena's half width; `progress` is the decrease of the distance in typical steps.
  double Goal(double distance, double progress, bool arrived) const;
  // Reward of the velocity styles: `speed` along the target direction in units of the target speed.
  double Velocity(double speed, double survival) const;
  // The whole reward; `effort` is in [0, 1].
  double Total(double style_part, double effort) const {
    return gain * (style_part - action_cost * effort);
  }
};

RewardRule SampleRewardRule(const InstanceOptions& options, std::span<const RewardStyle> styles,
                            Rng& rng);

// The sampled or pinned horizon in {low, ..., high}.
int SampleHorizon(const InstanceOptions& options, int low, int high, Rng& rng);
// The sampled or pinned scale of positions.
double SampleScale(const InstanceOptions& options, Rng& rng);

// What Env::HiddenFacts tells of an instance of any family.
template <typename Instance>
std::map<std::string, double> HiddenFactsOf(const Instance& instance) {
  return {{"style", static_cast<double>(instance.rule.style)},
          {"gain", instance.rule.gain},
          {"cost", instance.rule.cost},
          {"action_cost", instance.rule.action_cost},
          {"stop_at_goal", instance.rule.stop_at_goal ? 1.0 : 0.0},
          {"scale", instance.scale},
          {"slot_mask", instance.slot_mask},
          {"horizon", instance.horizon}};
}

// Bit i set: slot i is shown. All set, except in the share of episodes with dead slots.
std::uint8_t SampleSlotMask(const InstanceOptions& options, Rng& rng);
inline void ApplySlotMask(std::uint8_t mask, std::span<double, kGeometrySize> geometry) {
  if (mask == 0xff) return;
  for (unsigned i = 0; i < kGeometrySize; ++i) {
    if ((mask >> i & 1u) == 0) geometry[i] = 0.0;
  }
}

// Multiples of `step` in [low, high]: continuous parameters that are part of a layout.
double SampleOnGrid(double low, double high, double step, Rng& rng);
inline int RandomInt(int low, int high, Rng& rng) {
  return low + static_cast<int>(rng.Index(high - low + 1));
}

}  // namespace msrl

#endif  // MSRL_ENV_INSTANCE_H_
