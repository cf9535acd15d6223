#include "msrl/env/time_limit.h"

#include <gtest/gtest.h>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// Ends on a step of its own choice.
class Countdown : public EnvBase {
 public:
  Countdown(int limit, int end) : EnvBase(MakeSpec(limit), ""), end_(end) {}
  StepResult Step(const Action& action) override {
    RequireIndex(spec_, action);
    return {.reward = 1.0, .terminated = ++steps_ == end_, .truncated = false};
  }

 private:
  static EnvSpec MakeSpec(int limit) {
    EnvSpec spec;
    spec.id = "countdown";
    spec.action = {ActionKind::kDiscrete, 1};
    spec.step_limit = limit;
    return spec;
  }
  void Begin(std::uint64_t) override { steps_ = 0; }
  void WriteState(ByteWriter& writer) const override { writer.I64(steps_); }
  void ReadState(ByteReader& reader, std::uint64_t seed) override {
    const auto steps = static_cast<int>(reader.I64());
    reader.RequireEnd();
    EnsureInstance(seed);
    steps_ = steps;
  }
  void Publish() override {}

  int steps_ = 0;
  int end_;
};

StepResult LastStep(int limit, int end, int* steps) {
  TimeLimit env(std::make_unique<Countdown>(limit, end));
  env.Reset(0);
  for (*steps = 1;; ++*steps) {
    const StepResult result = env.Step(Action::Discrete(0));
    if (result.terminated || result.truncated) return result;
  }
}

TEST(TimeLimit, TheTwoEndsAreIndependent) {
  int steps = 0;
  StepResult last = LastStep(5, 3, &steps);
  EXPECT_TRUE(last.terminated && !last.truncated);
  EXPECT_EQ(steps, 3);
  last = LastStep(5, 7, &steps);
  EXPECT_TRUE(!last.terminated && last.truncated);
  EXPECT_EQ(steps, 5);
  last = LastStep(5, 5, &steps);
  EXPECT_TRUE(last.terminated && last.truncated);
  EXPECT_EQ(steps, 5);
}

TEST(TimeLimit, RefusesStepsOutsideAnEpisode) {
  TimeLimit env(std::make_unique<Countdown>(5, 1));
  EXPECT_THROW(env.Step(Action::Discrete(0)), UserError);
  env.Reset(0);
  EXPECT_TRUE(env.Step(Action::Discrete(0)).terminated);
  EXPECT_THROW(env.Step(Action::Discrete(0)), UserError);
  env.Reset(0);
  EXPECT_NO_THROW(env.Step(Action::Discrete(0)));
}

TEST(TimeLimit, SnapshotKeepsTheClock) {
  TimeLimit env(std::make_unique<Countdown>(3, 9));
  env.Reset(0);
  env.Step(Action::Discrete(0));
  const auto bytes = env.Snapshot();
  env.Step(Action::Discrete(0));
  EXPECT_TRUE(env.Step(Action::Discrete(0)).truncated);
  env.Restore(bytes);
  EXPECT_EQ(env.elapsed_steps(), 1);
  EXPECT_FALSE(env.Step(Action::Discrete(0)).truncated);
  EXPECT_TRUE(env.Step(Action::Discrete(0)).truncated);
}

}  // namespace
}  // namespace msrl
