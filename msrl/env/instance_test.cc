#include "msrl/env/instance.h"

#include <gtest/gtest.h>

namespace msrl {
namespace {

struct FixedLayout {
  std::string layout;
};

TEST(Instance, SplitsAreDisjointAndBalanced) {
  int train = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string layout = "path n" + std::to_string(i);
    EXPECT_NE(InSplit(layout, Split::kTrain), InSplit(layout, Split::kHeldOut));
    train += InSplit(layout, Split::kTrain) ? 1 : 0;
  }
  EXPECT_NEAR(train, 1000, 150);
}

TEST(Instance, SaysWhenASplitIsEmpty) {
  InstanceOptions options;
  const std::string layout = "the only one";
  const auto draw = [&] { return FixedLayout{layout}; };
  options.split = InSplit(layout, Split::kTrain) ? Split::kTrain : Split::kHeldOut;
  EXPECT_EQ(DrawInSplit(options, draw).layout, layout);
  options.split = InSplit(layout, Split::kTrain) ? Split::kHeldOut : Split::kTrain;
  EXPECT_THROW(DrawInSplit(options, draw), UserError);
}

TEST(Instance, RewardStylesRewardWhatTheySay) {
  RewardRule rule;
  rule.style = RewardStyle::kDistance;
  EXPECT_GT(rule.Goal(0.1, 0.0, false), rule.Goal(0.2, 0.0, false));
  rule.style = RewardStyle::kSparse;
  EXPECT_EQ(rule.Goal(0.1, 0.0, true), 1.0);
  EXPECT_EQ(rule.Goal(0.1, 1.0, false), 0.0);
  rule.style = RewardStyle::kTime;
  EXPECT_EQ(rule.Goal(0.1, 0.0, true), 0.0);
  EXPECT_LT(rule.Goal(0.1, 1.0, false), 0.0);
  rule.style = RewardStyle::kProgress;
  EXPECT_GT(rule.Goal(0.5, 1.0, false), 0.0);
  EXPECT_LT(rule.Goal(0.5, -1.0, false), 0.0);
  rule.style = RewardStyle::kVelocity;
  EXPECT_EQ(rule.Velocity(2.0, 0.0), rule.Velocity(1.0, 0.0));
  EXPECT_GT(rule.Velocity(1.0, 0.0), rule.Velocity(0.5, 0.0));
  rule.style = RewardStyle::kSurvival;
  EXPECT_EQ(rule.Velocity(0.0, 0.0), 0.5);
  rule.action_cost = 0.5;
  EXPECT_LT(rule.Total(1.0, 1.0), rule.Total(1.0, 0.0));
}

// Pinning one option leaves the draws of the others as they were.
TEST(Instance, PinnedOptionsDontShiftTheStream) {
  constexpr RewardStyle kStyles[] = {RewardStyle::kDistance, RewardStyle::kSparse};
  InstanceOptions free;
  InstanceOptions pinned;
  pinned.reward = RewardStyle::kSparse;
  pinned.action_cost = 0.25;
  Rng a(1, "x");
  Rng b(1, "x");
  const RewardRule first = SampleRewardRule(free, kStyles, a);
  const RewardRule second = SampleRewardRule(pinned, kStyles, b);
  EXPECT_EQ(second.style, RewardStyle::kSparse);
  EXPECT_EQ(second.action_cost, 0.25);
  EXPECT_EQ(first.gain, second.gain);
  EXPECT_EQ(a.state(), b.state());
}

}  // namespace
}  // namespace msrl
