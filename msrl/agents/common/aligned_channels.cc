#include "msrl/agents/common/aligned_channels.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr int kContactSlot = 7;

bool Bit(unsigned bits, int i) { return (bits >> static_cast<unsigned>(i) & 1u) != 0; }

float Clipped(double value) {
  return std::clamp(static_cast<float>(value), -kChannelBound, kChannelBound);
}

}  // namespace

ChannelFacts ChannelFacts::Of(const EnvSpec& spec) {
  ChannelFacts facts{.goal_origin = spec.goal_origin};
  const auto use = [&facts](int entry) {
    facts.used_actions = static_cast<std::uint16_t>(facts.used_actions | 1u << entry);
  };
  if (spec.action_code.empty()) {
    for (int i = 0; i < std::min(spec.action.size, kActionCodeSize); ++i) use(i);
  }
  for (const int entry : spec.action_code) use(entry);
  return facts;
}

void WriteGoal(const GoalPoint& goal, std::span<float> goal_channels) {
  MSRL_CHECK_EQ(goal_channels.size(), std::size_t{kGoalChannels});
  std::ranges::fill(goal_channels, 0.0F);
  const auto want = [&](int slot, float value) {
    goal_channels[static_cast<std::size_t>(slot)] = value;
    goal_channels[static_cast<std::size_t>(kGeometrySize + slot)] = 1.0F;
  };
  for (int i = 0; i < 2; ++i) {
    if (goal.shown[i]) want(goal.origin + i, Clipped(goal.at[i]));
  }
  if (goal.origin == 0 && (goal.shown[0] || goal.shown[1])) want(kContactSlot, 1.0F);
}

void ChannelWriter::WriteState(std::span<const double> geometry, std::span<float> column) {
  MSRL_CHECK_EQ(geometry.size(), std::size_t{kGeometrySize});
  MSRL_CHECK_EQ(column.size(), std::size_t{kChannels});
  std::ranges::fill(column, 0.0F);
  for (int i = 0; i < kGeometrySize; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    if (geometry[slot] != 0.0) alive_ = static_cast<std::uint8_t>(alive_ | 1u << i);
    column[slot] = Clipped(geometry[slot]);
    column[kGeometrySize + slot] = Bit(alive_, i) ? 1.0F : 0.0F;
  }
  // the goal is where its offset points to
  GoalPoint goal{.origin = facts_.goal_origin};
  for (int i = 0; i < 2; ++i) {
    goal.shown[i] = Bit(alive_, 2 + i);
    goal.at[i] = geometry[static_cast<std::size_t>(goal.origin + i)] +
                 geometry[static_cast<std::size_t>(2 + i)];
  }
  WriteGoal(goal, column.subspan(kGoalAt, kGoalChannels));
}

void ChannelWriter::Begin(std::span<const double> geometry, std::span<float> column) {
  alive_ = 0;
  WriteState(geometry, column);
}

void ChannelWriter::Next(std::span<const double> geometry, std::span<const double> action_code,
                         double reward, std::span<float> column) {
  MSRL_CHECK_EQ(action_code.size(), std::size_t{kActionCodeSize});
  WriteState(geometry, column);
  for (int i = 0; i < kActionCodeSize; ++i) {
    const auto at = static_cast<std::size_t>(kActionAt + i);
    column[at] = static_cast<float>(action_code[static_cast<std::size_t>(i)]);
    column[at + kActionCodeSize] = facts_.uses(i) ? 1.0F : 0.0F;
  }
  column[kRewardAt] = static_cast<float>(reward);
}

}  // namespace msrl
