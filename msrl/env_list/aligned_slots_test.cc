// A slot of the geometry means the same in all environments, or what is learned in one misleads in
// another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "msrl/env/behaviour.h"
#include "msrl/env_list/env_list.h"

namespace msrl {
namespace {

using Options = std::vector<std::string>;

struct Task {
  const char* id;
  Options options = {};
};

// They stand, and an episode ends when they have fallen.
const std::vector<Task> kBalancing{{"dubins-reacher", {"task=balance"}}, {"hopper"}, {"walker2d"}};
// The place of the goal is shown, and arriving is success.
const std::vector<Task> kGoals{{"point-rooms", {"reward=sparse"}},
                               {"dubins-reacher", {"task=arm", "reward=sparse"}},
                               {"four-rooms-sparse"},
                               {"reacher-sparse"},
                               {"reacher-goal"},
                               {"pusher-push"},
                               {"walker2d-goal"},
                               {"antmaze-umaze", {"continuing=true"}},
                               {"pointmaze-umaze", {"continuing=true"}},
                               {"pointmaze-large", {"reward=dense", "continuing=true"}}};
// There is no place to arrive at.
const std::vector<Task> kGoalless{
    {"hopper"},   {"walker2d"},       {"ant"},
    {"humanoid"}, {"humanoid-stand"}, {"dubins-reacher", {"task=balance"}}};

std::vector<Task> Standing() {
  std::vector<Task> tasks = kBalancing;
  tasks.push_back({"ant"});
  tasks.push_back({"humanoid"});
  return tasks;
}

TEST(AlignedSlots, UprightIsZero) {
  for (const Task& task : Standing()) {
    const auto env = MakeEnv(task.id, task.options);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      env->Reset(seed);
      EXPECT_LT(std::abs(env->geometry()[6]), 0.35) << task.id;
      EXPECT_EQ(env->geometry()[7], 0.0) << task.id;
    }
  }
  for (const Task& task : kBalancing) {
    const auto env = MakeEnv(task.id, task.options);
    env->Reset(1);
    EXPECT_GT(env->geometry()[1], -0.35) << task.id;
    EXPECT_LE(env->geometry()[1], 0.0) << task.id;
  }
}

TEST(AlignedSlots, FallingGoesDown) {
  for (const Task& task : kBalancing) {
    SCOPED_TRACE(task.id);
    const auto env = MakeEnv(task.id, task.options);
    int falls = 0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      env->Reset(seed);
      const double begin = env->geometry()[1];
      Behaviour behaviour(*env, {.persistence = 5.0}, Rng(seed, "falls"));
      StepResult result;
      while (!result.terminated && !result.truncated) result = env->Step(behaviour.Act());
      if (!result.terminated) continue;
      ++falls;
      // a fall is about the same number in all of them; the source draws its limit
      EXPECT_LT(env->geometry()[1], begin - 0.2);
      EXPECT_LT(env->geometry()[1], -0.3);
      EXPECT_GT(env->geometry()[1], -1.3);
    }
    EXPECT_GT(falls, 5);
  }
}

TEST(AlignedSlots, TiltHasASign) {
  int forwards = 0, backwards = 0;
  for (const Task& task : kBalancing) {
    const auto env = MakeEnv(task.id, task.options);
    double lowest = 0.0, highest = 0.0;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      env->Reset(seed);
      Behaviour behaviour(*env, {.persistence = 5.0}, Rng(seed, "falls"));
      StepResult result;
      while (!result.terminated && !result.truncated) {
        result = env->Step(behaviour.Act());
        lowest = std::min(lowest, env->geometry()[6]);
        highest = std::max(highest, env->geometry()[6]);
      }
    }
    EXPECT_TRUE(lowest < -0.2 || highest > 0.2) << task.id;
    backwards += lowest < -0.2 ? 1 : 0;
    forwards += highest > 0.2 ? 1 : 0;
  }
  EXPECT_GE(forwards, 2);
  EXPECT_GE(backwards, 2);
}

TEST(AlignedSlots, ContactMeansTheGoal) {
  for (const Task& task : kGoals) {
    SCOPED_TRACE(task.id);
    const auto env = MakeEnv(task.id, task.options);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      env->Reset(seed);
      const bool skilled = env->expert() != nullptr;
      Behaviour behaviour(*env, {.skill = skilled ? 1.0 : 0.0, .persistence = 4.0},
                          Rng(seed, "goal"));
      for (int t = 0; t < 120; ++t) {
        const StepResult result = env->Step(behaviour.Act());
        EXPECT_EQ(env->geometry()[7] == 1.0, env->Success().value_or(false));
        if (result.terminated || result.truncated) break;
      }
    }
  }
  for (const Task& task : kGoalless) {
    const auto env = MakeEnv(task.id, task.options);
    env->Reset(3);
    Behaviour behaviour(*env, {.persistence = 4.0}, Rng(1, "goal"));
    for (int t = 0; t < 60; ++t) {
      const StepResult result = env->Step(behaviour.Act());
      EXPECT_EQ(env->geometry()[7], 0.0) << task.id;
      if (result.terminated || result.truncated) env->Reset(static_cast<std::uint64_t>(t));
    }
  }
}

// Motion along the way to the goal makes the way shorter.
TEST(AlignedSlots, ApproachingIsMotionTowardsTheGoal) {
  for (const Task& task : kGoals) {
    SCOPED_TRACE(task.id);
    const auto env = MakeEnv(task.id, task.options);
    double sum_xy = 0.0, sum_xx = 0.0, sum_yy = 0.0;
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      env->Reset(seed);
      Behaviour behaviour(*env, {.persistence = 20.0}, Rng(seed, "approach"));
      Eigen::VectorXd before = env->geometry();
      for (int t = 0; t < 100; ++t) {
        const StepResult result = env->Step(behaviour.Act());
        const Eigen::VectorXd after = env->geometry();
        const double distance = before.segment(2, 2).norm();
        const double towards = after.segment(4, 2).dot(before.segment(2, 2)) / (distance + 1e-9);
        const double progress = distance - after.segment(2, 2).norm();
        sum_xy += towards * progress;
        sum_xx += towards * towards;
        sum_yy += progress * progress;
        before = after;
        if (result.terminated || result.truncated) break;
      }
    }
    ASSERT_GT(sum_yy, 0.0);
    // smoothed motion lags behind
    const bool smoothed = std::string(task.id).starts_with("antmaze");
    EXPECT_GT(sum_xy / std::sqrt(sum_xx * sum_yy), smoothed ? 0.3 : 0.6);
  }
}

}  // namespace
}  // namespace msrl
