#include "msrl/agents/common/off_policy.h"

#include <gtest/gtest.h>

#include "msrl/testing/agent_update.h"

namespace msrl {
namespace {

using ::msrl::testing::Doubles;
using ::msrl::testing::SmallSpec;

// One step of an episode that ends as told; returns how it is sampled.
ReplayBatch Learned(bool terminated, bool truncated) {
  const EnvSpec spec = SmallSpec(ActionKind::kContinuous, 1, /*observations=*/2);
  OffPolicyConfig config;
  config.batch_size = 2;
  config.replay_size = 10;
  config.random_steps = 2;
  OffPolicyMemory memory(spec, config, std::nullopt, 1);
  const SegmentMatrix matrix(CompactLift());
  const Doubles geometry(kGeometrySize);
  const Doubles before{1.0, 2.0};
  const Doubles after{3.0, 4.0};
  const Doubles action{0.5};
  const Doubles code(kActionCodeSize);
  const auto view = [&](const Doubles& values) {
    return Situation{EnvView(values.data(), 2), EnvView(geometry.data(), kGeometrySize), matrix, 0};
  };
  EXPECT_EQ(memory.UpdatesDue(), 0);
  for (int t = 0; t < 2; ++t) {
    EXPECT_TRUE(memory.IsWarmingUp());
    memory.Observe({.before = view(t == 0 || terminated || truncated ? before : after),
                    .action = Action::Continuous(action),
                    .action_code = code,
                    .reward = 70.0,
                    .scaled_reward = 7.0,
                    .psi = {},
                    .after = view(after),
                    .terminated = terminated,
                    .truncated = truncated});
  }
  EXPECT_FALSE(memory.IsWarmingUp());
  EXPECT_EQ(memory.UpdatesDue(), 1);
  return memory.Sample();
}

TEST(OffPolicyMemory, ValuesEndAtTerminationsOnly) {
  EXPECT_EQ(Learned(/*terminated=*/false, /*truncated=*/false).continues[0], 1.0F);
  EXPECT_EQ(Learned(/*terminated=*/false, /*truncated=*/true).continues[0], 1.0F);
  EXPECT_EQ(Learned(/*terminated=*/true, /*truncated=*/false).continues[0], 0.0F);
  EXPECT_EQ(Learned(/*terminated=*/true, /*truncated=*/true).continues[0], 0.0F);
}

TEST(OffPolicyMemory, KeepsTheTrueSuccessorAndTheScaledReward) {
  const ReplayBatch batch = Learned(/*terminated=*/false, /*truncated=*/true);
  for (Eigen::Index b = 0; b < batch.size(); ++b) {
    EXPECT_EQ(batch.observation.col(b), Eigen::Vector2f(1.0F, 2.0F));
    EXPECT_EQ(batch.next_observation.col(b), Eigen::Vector2f(3.0F, 4.0F));
    EXPECT_EQ(batch.action(0, b), 0.5F);
    EXPECT_EQ(batch.reward[b], 7.0F);
  }
}

}  // namespace
}  // namespace msrl
