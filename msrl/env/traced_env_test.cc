#include "msrl/env/traced_env.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::AllocationCount;
using ::msrl::testing::UserErrorText;

constexpr const char* kEnvs[] = {"graph-motif", "four-rooms-sparse", "reacher"};

std::vector<double> Seen(const Env& env) {
  std::vector<double> seen(env.observation().begin(), env.observation().end());
  seen.insert(seen.end(), env.geometry().begin(), env.geometry().end());
  return seen;
}

// Some steps; the episode does not end.
void Play(Env& env, int steps, Rng& rng) {
  ActionBuffer action(env.spec().action);
  for (int t = 0; t < steps; ++t) {
    DrawUniformAction(env.spec().action, rng, action);
    ASSERT_FALSE(env.Step(action.view()).terminated);
  }
}

TEST(TracedEnv, AnEpisodeIsPlayedAgain) {
  for (const char* id : kEnvs) {
    Rng rng(1, "play");
    TracedEnv env(MakeEnv(id));
    const auto expect_again = [&](std::size_t steps) {
      const std::unique_ptr<Env> other = MakeEnv(id);
      double reward = 0.0;
      std::size_t played = 0;
      PlayAgain(env.trace(), *other, [&](const Action&, const StepResult& result) {
        reward = result.reward;
        ++played;
      });
      EXPECT_EQ(played, steps) << id;
      EXPECT_EQ(Seen(*other), Seen(env)) << id;
      EXPECT_EQ(env.trace().reward, steps == 0 ? std::nullopt : std::optional(reward)) << id;
    };
    env.Reset(5);
    expect_again(0);
    Play(env, 2, rng);
    const std::vector<double> before(env.observation().begin(), env.observation().end());
    Play(env, 1, rng);
    EXPECT_EQ(env.trace().before, before) << id;
    expect_again(3);
    // taken up in its middle
    env.Restore(env.Snapshot());
    expect_again(0);
    Play(env, 2, rng);
    expect_again(2);
    env.Reset(6);
    Play(env, 1, rng);
    expect_again(1);
  }
}

class Breaking : public EnvWrapper {
 public:
  using EnvWrapper::EnvWrapper;
  void Reset(std::uint64_t seed) override { inner().Reset(seed); }
  StepResult Step(const Action& action) override {
    inner().Step(action);
    throw std::runtime_error("the cable fell out");
  }
  std::vector<std::byte> Snapshot() const override { return inner().Snapshot(); }
  void Restore(std::span<const std::byte> bytes) override { inner().Restore(bytes); }
};

TEST(TracedEnv, AStepThatThrowsIsPartOfIt) {
  TracedEnv env(std::make_unique<Breaking>(MakeEnv("four-rooms-sparse")));
  env.Reset(1);
  const ActionBuffer action(env.spec().action);
  EXPECT_THROW(env.Step(action.view()), std::runtime_error);
  EXPECT_EQ(env.trace().actions.size(), 2U);
  EXPECT_FALSE(env.trace().reward.has_value());
}

TEST(TracedEnv, StepsDoNotAllocate) {
  TracedEnv env(MakeEnv("reacher"));
  const ActionBuffer action(env.spec().action);
  env.Reset(1);
  for (int t = 0; t < 40; ++t) env.Step(action.view());
  env.Reset(2);
  const auto before = AllocationCount();
  for (int t = 0; t < 40; ++t) env.Step(action.view());
  EXPECT_EQ(AllocationCount(), before);
}

TEST(TracedEnv, TracesOfOthersAreRefused) {
  const std::unique_ptr<Env> grid = MakeEnv("graph-motif");
  const std::unique_ptr<Env> rooms = MakeEnv("four-rooms-sparse");
  const auto play = [](Env& env, std::vector<double> actions) {
    EpisodeTrace trace;
    trace.actions = std::move(actions);
    return UserErrorText([&] { PlayAgain(trace, env, [](const Action&, const StepResult&) {}); });
  };
  EXPECT_EQ(play(*rooms, {0.0, 0.0}), "no error");
  EXPECT_NE(play(*rooms, {0.0, 0.0, 0.0}).find("3 numbers are no actions of 2"), std::string::npos);
  EXPECT_NE(play(*rooms, {0.0, std::nan("")}), "no error");
  EXPECT_EQ(play(*grid, {0.0}), "no error");
  for (const double bad : {-1.0, 0.5, 1e300, std::nan("")}) {
    EXPECT_NE(play(*grid, {bad}).find("is no action"), std::string::npos) << bad;
  }
  EpisodeTrace trace;
  trace.snapshot = rooms->Snapshot();
  EXPECT_NE(UserErrorText([&] { PlayAgain(trace, *grid, {}); }), "no error");
}

}  // namespace
}  // namespace msrl
