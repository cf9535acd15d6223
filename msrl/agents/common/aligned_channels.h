// What all environments show in the same way, as numbers for networks that are carried from one to
// another: the aligned geometry, the action code and the last reward, each with what is there at
// all.
//
// A column of `kChannels` per state, the same for source episodes and for the target:
//   x_t      kStateChannels   geometry clipped to +-5, then 8 bits: which slots are alive
//   u_{t-1}  kActionChannels  code of the action that led here, then 10 bits: which entries are
//   used r_{t-1}  1                the reward of that action; both zero at the beginning c_t
//   kGoalChannels    what is wanted, by the geometry: 8 desired slots, 8 bits of relevance
// The first three are the token [x_t; u_{t-1}; r_{t-1}], which says nothing of what comes after t.
#ifndef MSRL_AGENTS_COMMON_ALIGNED_CHANNELS_H_
#define MSRL_AGENTS_COMMON_ALIGNED_CHANNELS_H_

#include <cstdint>
#include <span>

#include "msrl/env/spec.h"
#include "msrl/files/state.h"

namespace msrl {

inline constexpr int kStateChannels = 2 * kGeometrySize;
inline constexpr int kActionChannels = 2 * kActionCodeSize;
inline constexpr int kActionAt = kStateChannels;
inline constexpr int kRewardAt = kActionAt + kActionChannels;
inline constexpr int kTokenChannels = kRewardAt + 1;
inline constexpr int kGoalAt = kTokenChannels;
inline constexpr int kGoalChannels = 2 * kGeometrySize;
inline constexpr int kChannels = kTokenChannels + kGoalChannels;
inline constexpr float kChannelBound = 5.0F;
// Slots that speak of the goal: its offset, and whether it is touched.
inline constexpr int kGoalSlots[] = {2, 3, 7};

// The facts of a task that its channels depend on.
struct ChannelFacts {
  std::uint16_t used_actions = 0;  // bit i: entry i of the action code is used
  int goal_origin = 0;             // EnvSpec::goal_origin

  bool uses(int entry) const { return (used_actions >> static_cast<unsigned>(entry) & 1u) != 0; }
  static ChannelFacts Of(const EnvSpec& spec);
};

// Writes the columns of one episode, state by state. A slot is alive from the first state on in
// which it is not zero: a dead one reads zero for ever, and nobody tells a target's agent which
// those are.
class ChannelWriter {
 public:
  explicit ChannelWriter(const ChannelFacts& facts) : facts_(facts) {}

  // The first state of an episode.
  void Begin(std::span<const double> geometry, std::span<float> column);
  // The state that an action led to.
  void Next(std::span<const double> geometry, std::span<const double> action_code, double reward,
            std::span<float> column);

  void Visit(const Archive& state) { state.Int("alive", alive_); }

 private:
  void WriteState(std::span<const double> geometry, std::span<float> column);

  ChannelFacts facts_;
  std::uint8_t alive_ = 0;
};

// A desired place (origin 0) or velocity (origin 4), in the coordinates of the two slots from the
// origin on.
struct GoalPoint {
  int origin = 0;
  double at[2] = {0.0, 0.0};
  bool shown[2] = {true, true};
};
// c of a goal; a place is to be touched as well.
void WriteGoal(const GoalPoint& goal, std::span<float> goal_channels);

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_ALIGNED_CHANNELS_H_
