#include "msrl/env/batch_env.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"

namespace msrl {
namespace {

constexpr int kSize = 5;

BatchEnv MakeBatch(const std::string& id, int threads) {
  std::vector<std::unique_ptr<Env>> envs;
  for (int i = 0; i < kSize; ++i) envs.push_back(MakeEnv(id));
  return {std::move(envs), threads};
}

std::vector<std::uint64_t> Seeds() {
  std::vector<std::uint64_t> seeds(kSize);
  std::iota(seeds.begin(), seeds.end(), 40);
  return seeds;
}

// All that is seen in some steps with actions that the seed draws; ended ones stand still.
std::vector<double> Play(BatchEnv& batch, std::uint64_t seed) {
  std::vector<double> seen;
  std::vector<ActionBuffer> actions(kSize, ActionBuffer(batch.spec().action));
  std::vector<char> running(kSize, 1);
  Rng rng(seed, "actions");
  batch.Reset(Seeds());
  for (int step = 0; step < 60; ++step) {
    for (ActionBuffer& action : actions) {
      for (double& value : action.values()) value = rng.Uniform(-1.0, 1.0);
    }
    const auto results = batch.Step(actions, running);
    for (int i = 0; i < kSize; ++i) {
      const auto at = static_cast<std::size_t>(i);
      seen.push_back(results[at].reward);
      if (results[at].terminated || results[at].truncated) running[at] = 0;
      for (const double value : batch.env(i).observation()) seen.push_back(value);
    }
  }
  return seen;
}

TEST(BatchEnv, ThreadsDoNotChangeWhatHappens) {
  for (const char* id : {"hopper", "four-rooms-dense"}) {
    BatchEnv one = MakeBatch(id, 1);
    BatchEnv two = MakeBatch(id, 2);
    BatchEnv many = MakeBatch(id, 16);
    const auto expected = Play(one, 3);
    EXPECT_EQ(Play(two, 3), expected);
    EXPECT_EQ(Play(many, 3), expected);
    EXPECT_NE(Play(two, 4), expected);
  }
}

TEST(BatchEnv, ThrowsTheFirstErrorAndGoesOn) {
  BatchEnv batch = MakeBatch("reacher", 3);
  batch.Reset(Seeds());
  std::vector<ActionBuffer> actions(kSize, ActionBuffer(batch.spec().action));
  actions[3].values()[0] = std::nan("");
  actions[1].values()[1] = std::nan("");
  try {
    batch.Step(actions);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()), "reacher: action[1] is nan");
  }
  actions[1].values()[1] = actions[3].values()[0] = 0.0;
  EXPECT_LT(batch.Step(actions)[1].reward, 0.0);
}

TEST(BatchEnv, StepDoesNotAllocate) {
  BatchEnv batch = MakeBatch("reacher", 2);
  batch.Reset(Seeds());
  const std::vector<ActionBuffer> actions(kSize, ActionBuffer(batch.spec().action));
  const std::int64_t before = testing::AllocationCount();
  for (int i = 0; i < 20; ++i) batch.Step(actions);
  EXPECT_EQ(testing::AllocationCount(), before);
}

}  // namespace
}  // namespace msrl
