// What every listed environment must do.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"
#include "msrl/testing/allocation_counter.h"

namespace msrl {
namespace {

// All that is seen of a stretch of steps.
struct Record {
  std::vector<double> numbers;
  bool operator==(const Record&) const = default;
};

void AppendState(const Env& env, Record& record) {
  for (const double value : env.observation()) record.numbers.push_back(value);
  for (const double value : env.geometry()) record.numbers.push_back(value);
}

// Plays on from the present state with random actions; resets with further seeds at ends.
Record Play(Env& env, int steps, std::uint64_t action_seed, std::uint64_t reset_seed) {
  Record record;
  Behaviour behaviour(env, {.skill = 0.0, .persistence = 3.0}, Rng(action_seed, "actions"));
  AppendState(env, record);
  for (int i = 0; i < steps; ++i) {
    const StepResult result = env.Step(behaviour.Act());
    record.numbers.push_back(result.reward);
    record.numbers.push_back(result.terminated ? 1.0 : 0.0);
    record.numbers.push_back(result.truncated ? 1.0 : 0.0);
    if (result.terminated || result.truncated) env.Reset(reset_seed++);
    AppendState(env, record);
  }
  return record;
}

// Physics costs a hundred times as much as our own environments.
int Scaled(const Env& env, int count) {
  return env.spec().frame_skip > 1 ? std::max(count / 15, 2) : count;
}

// Skill where there is an expert, random behaviour elsewhere.
Behaviour MakeSkilled(Env& env, double skill, double persistence, std::uint64_t seed) {
  return {env,
          {.skill = env.expert() != nullptr ? skill : 0.0, .persistence = persistence},
          Rng(seed, "a")};
}

class EnvContract : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Env> Make(const std::vector<std::string>& options = {}) const {
    return MakeEnv(GetParam(), options);
  }
};

TEST_P(EnvContract, SameSeedSameEpisode) {
  const auto first = Make();
  const auto second = Make();
  second->Reset(99);
  Play(*second, 300, 5, 50);
  for (std::uint64_t seed = 0; std::cmp_less(seed, Scaled(*first, 20)); ++seed) {
    first->Reset(seed);
    second->Reset(seed);
    EXPECT_EQ(first->InstanceText(), second->InstanceText());
    EXPECT_EQ(first->horizon(), second->horizon());
    EXPECT_EQ(Play(*first, 200, seed, seed + 100), Play(*second, 200, seed, seed + 100));
  }
}

TEST_P(EnvContract, AnotherSeedDiffers) {
  const auto env = Make();
  std::set<std::vector<double>> starts;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    env->Reset(seed);
    Record record;
    AppendState(*env, record);
    starts.insert(record.numbers);
  }
  EXPECT_GE(starts.size(), 195u);
}

TEST_P(EnvContract, SnapshotIsComplete) {
  const auto env = Make();
  const int steps = Scaled(*env, 1500);
  for (std::uint64_t seed = 0; std::cmp_less(seed, Scaled(*env, 5)); ++seed) {
    env->Reset(seed);
    Play(*env, 13, seed, 300);
    const auto bytes = env->Snapshot();
    const auto success = env->Success();
    const Record expected = Play(*env, steps, 7, 500);
    Play(*env, 3 * steps, 8, 900);
    env->Restore(bytes);
    EXPECT_EQ(env->Snapshot(), bytes);
    EXPECT_EQ(env->Success(), success);
    EXPECT_EQ(Play(*env, steps, 7, 500), expected);
    // another object has nothing but the bytes
    const auto other = Make();
    other->Restore(bytes);
    EXPECT_EQ(other->Success(), success);
    EXPECT_EQ(Play(*other, steps, 7, 500), expected);
  }
}

TEST_P(EnvContract, RefusesForeignSnapshotsAndKeepsItsState) {
  const auto env = Make();
  env->Reset(3);
  Play(*env, 5, 1, 1);
  const auto bytes = env->Snapshot();
  Record before;
  AppendState(*env, before);

  auto longer = bytes;
  longer.push_back(std::byte{0});
  auto shorter = bytes;
  shorter.pop_back();
  EXPECT_THROW(env->Restore(longer), UserError);
  EXPECT_THROW(env->Restore(shorter), UserError);
  EXPECT_THROW(env->Restore({}), UserError);
  for (const EnvEntry& entry : BuiltinEnvs()) {
    if (entry.id == GetParam()) continue;
    const auto other = MakeEnv(entry.id);
    other->Reset(3);
    EXPECT_THROW(env->Restore(other->Snapshot()), UserError) << entry.id;
  }
  if (BuiltinEnvs().Find(GetParam()).is_source) {
    const auto other = Make({"reward=sampled", "horizon=50"});
    other->Reset(3);
    EXPECT_THROW(env->Restore(other->Snapshot()), UserError);
  }
  Record after;
  AppendState(*env, after);
  EXPECT_EQ(before, after);
  EXPECT_EQ(env->Snapshot(), bytes);
}

TEST_P(EnvContract, DamagedSnapshotsAreRefusedOrHarmless) {
  const auto env = Make();
  env->Reset(4);
  const auto bytes = env->Snapshot();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const std::byte flip : {std::byte{0x01}, std::byte{0x80}, std::byte{0xff}}) {
      auto damaged = bytes;
      damaged[i] ^= flip;
      try {
        env->Restore(damaged);
      } catch (const UserError&) {
        continue;
      }
      EXPECT_TRUE(env->geometry().size() == kGeometrySize);
    }
  }
}

TEST_P(EnvContract, WhatIsSeenIsFiniteAndBounded) {
  const auto env = Make();
  const EnvSpec& spec = env->spec();
  EXPECT_EQ(spec.id, GetParam());
  double largest = 0.0;
  double square_sum = 0.0;
  std::int64_t count = 0;
  const int most_steps = Scaled(*env, 30000);
  for (std::uint64_t seed = 0; seed < 300 && count < most_steps; ++seed) {
    env->Reset(seed);
    ASSERT_EQ(env->observation().size(), spec.observation_size);
    ASSERT_EQ(env->geometry().size(), kGeometrySize);
    ASSERT_GE(env->horizon(), 1);
    ASSERT_LE(env->horizon(), spec.step_limit);
    Behaviour behaviour = MakeSkilled(*env, static_cast<double>(seed % 3) - 1.0, 4.0, seed);
    for (bool running = true; running;) {
      ASSERT_TRUE(env->observation().allFinite());
      ASSERT_TRUE(env->geometry().allFinite());
      ASSERT_LE(env->observation().cwiseAbs().maxCoeff(), spec.observation_bound);
      ASSERT_LE(env->geometry().cwiseAbs().maxCoeff(), spec.geometry_bound);
      const StepResult result = env->Step(behaviour.Act());
      ASSERT_GE(result.reward, spec.reward_low);
      ASSERT_LE(result.reward, spec.reward_high);
      largest = std::max(largest, std::abs(result.reward) / spec.reward_scale);
      square_sum += env->geometry().head(6).squaredNorm() / 6.0;
      ++count;
      running = !result.terminated && !result.truncated;
    }
  }
  // normalised units: neither tiny nor huge; random play may never meet a sparse reward
  if (largest > 0.0) {
    EXPECT_GE(largest, 0.3);
  }
  EXPECT_LE(largest, 3.0);
  const double typical = std::sqrt(square_sum / static_cast<double>(count));
  EXPECT_GE(typical, 0.2);
  EXPECT_LE(typical, 2.0);
}

TEST_P(EnvContract, OnlyTheTimeLimitTruncates) {
  const auto wrapped = Make();
  const auto bare = BuiltinEnvs().Find(GetParam()).make({});
  for (std::uint64_t seed = 0; std::cmp_less(seed, Scaled(*wrapped, 30)); ++seed) {
    wrapped->Reset(seed);
    bare->Reset(seed);
    Behaviour behaviour = MakeSkilled(*wrapped, 1.0, 1.0, seed);
    for (int step = 1;; ++step) {
      const Action action = behaviour.Act();
      const StepResult inside = bare->Step(action);
      const StepResult outside = wrapped->Step(action);
      ASSERT_FALSE(inside.truncated);
      ASSERT_EQ(inside.terminated, outside.terminated);
      ASSERT_EQ(inside.reward, outside.reward);
      ASSERT_EQ(outside.truncated, step == wrapped->horizon());
      if (outside.terminated || outside.truncated) break;
    }
  }
}

// A rule that tells ends from observations tells those of the environment, and every target has
// one.
TEST_P(EnvContract, ObservationsTellTheEnd) {
  const auto env = Make();
  const auto& terminates = env->spec().terminates;
  const bool is_source = BuiltinEnvs().Find(GetParam()).is_source;
  ASSERT_EQ(terminates == nullptr, is_source);
  if (is_source) GTEST_SKIP();
  const auto told = [&] {
    const EnvView shown = env->observation();
    return terminates({shown.data(), static_cast<std::size_t>(shown.size())});
  };
  int ends = 0;
  for (std::uint64_t seed = 0; std::cmp_less(seed, Scaled(*env, 300)); ++seed) {
    env->Reset(seed);
    EXPECT_FALSE(told());
    Behaviour behaviour(*env, {.skill = 0.0, .persistence = 8.0}, Rng(seed, "a"));
    for (bool running = true; running;) {
      const StepResult result = env->Step(behaviour.Act());
      ASSERT_EQ(told(), result.terminated) << env->fault();
      ends += result.terminated ? 1 : 0;
      running = !result.terminated && !result.truncated;
    }
  }
  // random actions make robots fall and a ball roll to the goal; that an ant reaches the goal of a
  // maze is another test's
  const std::set<std::string> ending{"hopper", "walker2d", "ant", "humanoid", "pointmaze"};
  EXPECT_EQ(ends > 0, ending.contains(env->spec().family));
}

TEST_P(EnvContract, RefusesBadActions) {
  const auto env = Make();
  env->Reset(0);
  const EnvSpec& spec = env->spec();
  std::vector<double> values(static_cast<std::size_t>(spec.action.size), 0.0);
  const auto refuses = [&](const Action& action) { EXPECT_THROW(env->Step(action), UserError); };
  Record before;
  AppendState(*env, before);
  if (spec.action.kind == ActionKind::kDiscrete) {
    refuses(Action::Discrete(-1));
    refuses(Action::Discrete(spec.action.size));
    refuses(Action::Continuous(values));
  } else {
    refuses(Action::Discrete(0));
    values.push_back(0.0);
    refuses(Action::Continuous(values));
    values.pop_back();
    for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
      values[0] = bad;
      refuses(Action::Continuous(values));
    }
    refuses(Action::Continuous(std::span(values).first(values.size() - 1)));
  }
  Record after;
  AppendState(*env, after);
  EXPECT_EQ(before, after);
}

TEST_P(EnvContract, ClipsContinuousActions) {
  const auto env = Make();
  if (env->spec().action.kind != ActionKind::kContinuous) GTEST_SKIP();
  const auto n = static_cast<std::size_t>(env->spec().action.size);
  const std::vector<double> far(n, 1e6);
  const std::vector<double> edge(n, 1.0);
  env->Reset(1);
  const double reward = env->Step(Action::Continuous(far)).reward;
  Record clipped;
  AppendState(*env, clipped);
  env->Reset(1);
  EXPECT_EQ(env->Step(Action::Continuous(edge)).reward, reward);
  Record exact;
  AppendState(*env, exact);
  EXPECT_EQ(clipped, exact);
}

TEST_P(EnvContract, StepDoesNotAllocate) {
  const auto env = Make();
  for (std::uint64_t seed = 0; std::cmp_less(seed, Scaled(*env, 20)); ++seed) {
    env->Reset(seed);
    Behaviour behaviour(*env, {.skill = 0.0, .persistence = 2.0}, Rng(seed, "a"));
    std::array<double, kActionCodeSize> code;
    const std::int64_t before = testing::AllocationCount();
    for (bool running = true; running;) {
      const Action action = behaviour.Act();
      EmbedAction(env->spec(), action, code);
      const StepResult result = env->Step(action);
      running = !result.terminated && !result.truncated;
    }
    EXPECT_EQ(testing::AllocationCount(), before);
  }
}

TEST_P(EnvContract, SplitsNeverShareALayout) {
  if (!BuiltinEnvs().Find(GetParam()).is_source) GTEST_SKIP();
  const auto train = Make({"split=train"});
  const auto held_out = Make({"split=held-out"});
  std::set<std::string> train_layouts;
  std::set<std::string> held_out_layouts;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    train->Reset(seed);
    train_layouts.insert(train->InstanceText());
    held_out->Reset(seed);
    held_out_layouts.insert(held_out->InstanceText());
  }
  for (const std::string& layout : held_out_layouts) {
    ASSERT_FALSE(train_layouts.contains(layout)) << layout;
  }
  // both halves are diverse
  EXPECT_GE(train_layouts.size(), 1000u);
  EXPECT_GE(held_out_layouts.size(), 1000u);
}

TEST_P(EnvContract, DeadSlotsReadZero) {
  if (!BuiltinEnvs().Find(GetParam()).is_source) GTEST_SKIP();
  const auto env = Make({"dead_slots=1"});
  const auto whole = Make();
  int dead = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    env->Reset(seed);
    whole->Reset(seed);
    for (int i = 0; i < kGeometrySize; ++i) {
      const bool is_dead = env->geometry()[i] == 0.0 && whole->geometry()[i] != 0.0;
      EXPECT_TRUE(is_dead || env->geometry()[i] == whole->geometry()[i]);
      dead += is_dead ? 1 : 0;
    }
    EXPECT_EQ(env->observation(), whole->observation());
  }
  EXPECT_GE(dead, 100);
}

std::vector<std::string> Ids() {
  std::vector<std::string> ids;
  for (const EnvEntry& entry : BuiltinEnvs()) ids.push_back(entry.id);
  return ids;
}

INSTANTIATE_TEST_SUITE_P(All, EnvContract, ::testing::ValuesIn(Ids()), [](const auto& test) {
  std::string name = test.param;
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return name;
});

}  // namespace
}  // namespace msrl
