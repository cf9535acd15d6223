// What the tasks add to the physics: rewards, ends, success, drawn instances, faults.
#include "msrl/mujoco/tasks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/mujoco/ant_maze.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/planar_walker.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

std::unique_ptr<MujocoEnv> Make(const std::string& id,
                                const std::vector<std::string>& options = {}) {
  for (const MujocoTask& task : MujocoTasks()) {
    if (task.id == id) return task.make(options);
  }
  ADD_FAILURE() << id;
  return nullptr;
}

std::vector<double> Copy(const double* values, int count) { return {values, values + count}; }

StepResult StepZero(MujocoEnv& env) {
  return env.StepControl(std::vector<double>(static_cast<std::size_t>(env.model().nu), 0.0));
}

TEST(Fault, ADivergedSimulationEndsTheEpisodeWithAReason) {
  for (const char* id : {"hopper", "pusher", "ant", "humanoid"}) {
    const auto env = Make(id);
    env->Reset(1);
    EXPECT_EQ(env->fault(), "");
    auto velocity = Copy(env->data().qvel, env->model().nv);
    velocity.back() = 1e12;
    env->Replace(Copy(env->data().qpos, env->model().nq), velocity,
                 Copy(env->data().qacc_warmstart, env->model().nv));
    const Eigen::VectorXd shown = env->observation();
    const StepResult result = StepZero(*env);
    EXPECT_TRUE(result.terminated) << id;
    EXPECT_EQ(result.reward, 0.0);
    EXPECT_EQ(env->fault(), "the simulation diverged: a velocity is not finite or beyond 1e10");
    EXPECT_EQ(env->observation(), shown);
    env->Reset(1);
    EXPECT_EQ(env->fault(), "");
    EXPECT_FALSE(StepZero(*env).terminated);
  }
}

TEST(Fault, IsKeptInSnapshots) {
  const auto env = Make("hopper");
  env->Reset(1);
  auto velocity = Copy(env->data().qvel, env->model().nv);
  velocity[0] = 1e12;
  env->Replace(Copy(env->data().qpos, env->model().nq), velocity,
               Copy(env->data().qacc_warmstart, env->model().nv));
  StepZero(*env);
  const auto bytes = env->Snapshot();
  const auto other = Make("hopper");
  other->Restore(bytes);
  EXPECT_EQ(other->fault(), env->fault());
}

TEST(ModelOption, ReplacesTheModel) {
  const auto path = std::filesystem::temp_directory_path() / "msrl_model_option.xml";
  std::ofstream(path) << ReplaceOnce(ModelText("hopper"), "gear=\"200\"", "gear=\"20\"");
  const auto weak = Make("hopper", {"model=" + path.string()});
  EXPECT_EQ(weak->model().actuator_gear[0], 20);
  std::ofstream(path) << ModelText("walker2d");
  EXPECT_EQ(testing::UserErrorText([&] { Make("hopper", {"model=" + path.string()}); }),
            "hopper: the model has 9 positions, 9 velocities and 6 controls; the task needs 6, 6 "
            "and 3");
  std::filesystem::remove(path);
  EXPECT_NE(testing::UserErrorText([&] {
              Make("hopper", {"model=" + path.string()});
            }).find(path.string()),
            std::string::npos);
}

TEST(Planar, AliveBonusOnTheLastStepIsWhatV4Adds) {
  for (const char* id : {"hopper", "walker2d"}) {
    const auto v4 = Make(id, {"version=v4"});
    const auto v5 = Make(id);
    for (MujocoEnv* env : {v4.get(), v5.get()}) {
      env->Reset(1);
      auto position = Copy(env->data().qpos, env->model().nq);
      position[1] = 0.5;  // too low
      env->StartAt(position, std::vector<double>(position.size(), 0.0));
    }
    const StepResult four = StepZero(*v4);
    const StepResult five = StepZero(*v5);
    EXPECT_TRUE(four.terminated && five.terminated);
    EXPECT_NEAR(four.reward - five.reward, 1.0, 0.1);
  }
}

TEST(Planar, VelocityTaskPaysForTheDrawnSpeed) {
  const auto env = Make("hopper-velocity");
  std::set<double> targets;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    env->Reset(seed);
    const double target = env->observation()[11];
    EXPECT_GE(target, 0.5);
    EXPECT_LE(target, 2.0);
    targets.insert(target);
    auto velocity = std::vector<double>(6, 0.0);
    velocity[0] = target;
    env->StartAt(Copy(env->model().qpos0, 6), velocity);
    const double at_speed = StepZero(*env).reward;
    EXPECT_EQ(env->Success(), true);
    env->StartAt(Copy(env->model().qpos0, 6), std::vector<double>(6, 0.0));
    const double at_rest = StepZero(*env).reward;
    EXPECT_EQ(env->Success(), false);
    EXPECT_GT(at_speed, at_rest + 1.5);
    EXPECT_LE(at_speed, 3.0);
  }
  EXPECT_EQ(targets.size(), 50u);
}

TEST(Planar, GoalTaskPaysForTheWayThere) {
  const auto env = Make("walker2d-goal");
  env->Reset(3);
  const double goal = env->observation()[17] + env->data().qpos[0];
  EXPECT_GE(goal, 2.0);
  EXPECT_LE(goal, 6.0);
  auto position = Copy(env->model().qpos0, 9);
  std::vector<double> velocity(9, 0.0);
  velocity[0] = 1.0;
  env->StartAt(position, velocity);
  EXPECT_NEAR(StepZero(*env).reward, 2.0, 0.3);
  EXPECT_EQ(env->Success(), false);
  position[0] = goal + 1.0;  // beyond: the same speed leads away
  env->StartAt(position, velocity);
  EXPECT_NEAR(StepZero(*env).reward, 0.0, 0.3);
  position[0] = goal;
  env->StartAt(position, velocity);
  StepZero(*env);
  EXPECT_EQ(env->Success(), true);
}

TEST(Planar, TerrainIsDrawnAndFelt) {
  for (const char* id : {"hopper-terrain", "walker2d-terrain"}) {
    const auto env = Make(id);
    auto* walker = dynamic_cast<PlanarWalker*>(env.get());
    ASSERT_NE(walker, nullptr);
    std::set<double> first_boxes;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      env->Reset(seed);
      int high = 0;
      for (double x = -1.0; x < 15.0; x += 0.05) {
        const double height = walker->GroundHeight(x);
        EXPECT_GE(height, 0.0);
        EXPECT_LE(height, 0.1);
        if (x < 1.0) {
          EXPECT_EQ(height, 0.0);
        }
        high += height > 0.0 ? 1 : 0;
      }
      EXPECT_GE(high, 40);
      first_boxes.insert(walker->GroundHeight(1.5));
      // what is shown ahead is the ground
      const auto n = env->observation().size();
      for (int i = 1; i <= PlanarWalker::kProbes; ++i) {
        EXPECT_EQ(env->observation()[n - PlanarWalker::kProbes + i - 1],
                  walker->GroundHeight(env->data().qpos[0] + 0.25 * i));
      }
    }
    EXPECT_EQ(first_boxes.size(), 20u);
    // at qpos0 the sole is 4 cm above the floor: 5 mm into the box is still above the floor
    env->Reset(0);
    auto position = Copy(env->model().qpos0, env->model().nq);
    position[0] = 1.5;
    position[1] += walker->GroundHeight(1.5) - 0.045;
    env->StartAt(position, std::vector<double>(position.size(), 0.0));
    EXPECT_GT(env->data().ncon, 0);
    position[0] = 0.5;
    env->StartAt(position, std::vector<double>(position.size(), 0.0));
    EXPECT_EQ(env->data().ncon, 0);
  }
}

TEST(Reacher, SparseRewardIsWithinThreeCentimetres) {
  const auto env = Make("reacher-sparse");
  env->Reset(1);
  // arm stretched along x: the fingertip is at 0.21
  const std::vector<double> rest(4, 0.0);
  env->StartAt(std::vector<double>{0, 0, 0.19, 0}, rest);
  EXPECT_EQ(StepZero(*env).reward, 1.0);
  EXPECT_EQ(env->Success(), true);
  EXPECT_EQ(env->geometry()[7], 1.0);
  env->StartAt(std::vector<double>{0, 0, 0.175, 0}, rest);
  EXPECT_EQ(StepZero(*env).reward, 0.0);
  EXPECT_EQ(env->Success(), false);
  EXPECT_EQ(env->geometry()[7], 0.0);
}

TEST(Reacher, GeometryMovesAsTheFingertipDoes) {
  const auto env = Make("reacher");
  env->Reset(2);
  Behaviour behaviour(*env, {}, Rng(1, "a"));
  for (int i = 0; i < 20; ++i) env->Step(behaviour.Act());
  const Eigen::VectorXd before = env->geometry();
  env->Step(behaviour.Act());
  const Eigen::VectorXd after = env->geometry();
  // displacement in units of 0.2 m, speed in m/s, 0.02 s; both lag, so only roughly
  for (int i = 0; i < 2; ++i) {
    const double speed = (after[i] - before[i]) * 0.2 / 0.02;
    EXPECT_NEAR(speed, (before[4 + i] + after[4 + i]) / 2, 0.3);
    EXPECT_NEAR(after[i] - before[i], before[2 + i] - after[2 + i], 1e-12);
  }
}

TEST(Pusher, ThePostIsInTheWay) {
  const auto env = Make("pusher-obstacle");
  env->Reset(5);
  const double* post = env->data().mocap_pos;
  const auto o = env->observation();
  EXPECT_NEAR(post[0], (o[17] + o[20]) / 2, 1e-12);
  EXPECT_NEAR(post[1], (o[18] + o[21]) / 2, 1e-12);
  EXPECT_EQ(o[23], post[0]);
  EXPECT_EQ(o[24], post[1]);
  // the puck runs into it and does not get through
  auto position = Copy(env->data().qpos, 11);
  std::vector<double> velocity(11, 0.0);
  velocity[8] = 3.0 * (o[20] - o[17]);
  velocity[7] = 3.0 * (o[21] - o[18]);
  env->StartAt(position, velocity);
  for (int i = 0; i < 40; ++i) StepZero(*env);
  EXPECT_EQ(env->Success(), false);
  const auto free = Make("pusher-push");
  free->Reset(5);
  free->StartAt(position, velocity);
  double nearest = 1.0;
  for (int i = 0; i < 40; ++i) {
    StepZero(*free);
    nearest = std::min(nearest, std::hypot(free->geometry()[2], free->geometry()[3]));
  }
  EXPECT_LT(nearest, std::hypot(env->geometry()[2], env->geometry()[3]));
}

TEST(AntMaze, MapsAreTheReferences) {
  const Maze umaze("umaze");
  EXPECT_EQ(umaze.free_cells().size(), 7u);
  EXPECT_EQ(Maze("medium").free_cells().size(), 26u);
  EXPECT_EQ(Maze("large").free_cells().size(), 46u);
  EXPECT_EQ(umaze.X({1, 1}), -4.0);
  EXPECT_EQ(umaze.Y({1, 1}), 4.0);
  EXPECT_EQ(umaze.X({3, 3}), 4.0);
  EXPECT_EQ(umaze.Y({3, 3}), -4.0);
}

TEST(AntMaze, DrawsAndGoals) {
  for (const char* id : {"antmaze-umaze", "antmaze-medium", "antmaze-large"}) {
    const auto env = Make(id);
    const Maze& maze = dynamic_cast<AntMaze&>(*env).maze();
    const auto is_free = [&](double x, double y) {
      const int row = static_cast<int>(std::floor((2.0 * maze.rows() - y) / 4));
      const int column = static_cast<int>(std::floor((x + 2.0 * maze.columns()) / 4));
      return !maze.IsWall({row, column});
    };
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
      env->Reset(seed);
      const auto o = env->observation().tail<4>();
      EXPECT_TRUE(is_free(o[0], o[1]));
      EXPECT_TRUE(is_free(o[2], o[3]));
      EXPECT_FALSE(*env->Success());
    }
  }
}

TEST(AntMaze, EndsAtTheGoalUnlessItContinues) {
  const auto at_goal = [](MujocoEnv& env) {
    env.Reset(1);
    auto position = Copy(env.model().qpos0, 15);
    position[0] = env.memory()[AntMaze::kGoalX] + 0.1;
    position[1] = env.memory()[AntMaze::kGoalY];
    env.StartAt(position, std::vector<double>(14, 0.0));
    return StepZero(env);
  };
  const auto plain = Make("antmaze-umaze");
  EXPECT_EQ(at_goal(*plain).reward, 1.0);
  EXPECT_TRUE(at_goal(*plain).terminated);
  const auto continuing = Make("antmaze-umaze", {"continuing=true"});
  EXPECT_EQ(at_goal(*continuing).reward, 1.0);
  EXPECT_FALSE(at_goal(*continuing).terminated);
  EXPECT_TRUE(*continuing->Success());
  const auto dense = Make("antmaze-umaze", {"reward=dense"});
  EXPECT_NEAR(at_goal(*dense).reward, std::exp(-0.1), 0.02);
  EXPECT_FALSE(dense->spec().random_return);  // measured of other rewards
  const auto dense_on = Make("antmaze-umaze", {"reward=dense", "continuing=true"});
  EXPECT_EQ(dense_on->spec().reference_return->value, 700.0);
  const auto moving = Make("antmaze-umaze", {"continuing=true", "new_goals=true"});
  moving->Reset(1);
  const double old_goal = moving->memory()[AntMaze::kGoalX];
  EXPECT_EQ(at_goal(*moving).reward, 1.0);
  EXPECT_NE(moving->memory()[AntMaze::kGoalX], old_goal);
  EXPECT_FALSE(*moving->Success());
  EXPECT_EQ(testing::UserErrorText([] { Make("antmaze-umaze", {"new_goals=true"}); }),
            "antmaze: new_goals needs continuing=true");
}

TEST(Humanoid, VariantsWantTheirOwnVelocity) {
  const auto reward = [](const char* id, double speed_x, double speed_y) {
    const auto env = Make(id);
    env->Reset(1);
    std::vector<double> velocity(23, 0.0);
    velocity[0] = speed_x;
    velocity[1] = speed_y;
    env->StartAt(Copy(env->model().qpos0, 24), velocity);
    return StepZero(*env).reward;
  };
  EXPECT_GT(reward("humanoid", 2, 0), reward("humanoid", 1, 0) + 1.0);
  EXPECT_GT(reward("humanoid-stand", 0, 0), reward("humanoid-stand", 1, 0) + 1.0);
  EXPECT_GT(reward("humanoid-walk", 1, 0), reward("humanoid-walk", 0, 0) + 1.0);
  EXPECT_GT(reward("humanoid-walk", 1, 0), reward("humanoid-walk", 2, 0) + 1.0);
  const auto env = Make("humanoid-direction");
  env->Reset(1);
  const auto target = env->observation().tail<2>();
  EXPECT_NEAR(target.norm(), 1.0, 1e-12);
  EXPECT_GT(reward("humanoid-direction", target[0], target[1]),
            reward("humanoid-direction", -target[0], -target[1]) + 2.0);
}

// Uniform random actions against the published figures (docs/environments.md), five standard
// errors wide.
TEST(RandomReturn, AgreesWithTheReference) {
  struct Anchor {
    const char* id;
    int episodes;
    double published;
    double deviation;  // of one episode
  };
  for (const Anchor& anchor :
       {Anchor{"reacher", 100, -42.5, 4.1}, Anchor{"pusher", 40, -148.8, 7.7},
        Anchor{"hopper", 200, 17.5, 18.0}, Anchor{"walker2d", 200, 1.7, 6.0},
        Anchor{"humanoid", 100, 114.0, 34.0}}) {
    const auto env = Make(anchor.id);
    double sum = 0.0;
    for (int episode = 0; episode < anchor.episodes; ++episode) {
      Behaviour behaviour(*env, {}, Rng(static_cast<std::uint64_t>(episode), "random"));
      env->Reset(static_cast<std::uint64_t>(1000 + episode));
      for (int step = 0; step < env->spec().step_limit; ++step) {
        const StepResult result = env->Step(behaviour.Act());
        sum += result.reward;
        if (result.terminated) break;
      }
    }
    EXPECT_NEAR(sum / anchor.episodes, anchor.published,
                5 * anchor.deviation / std::sqrt(anchor.episodes))
        << anchor.id;
  }
}

}  // namespace
}  // namespace msrl
