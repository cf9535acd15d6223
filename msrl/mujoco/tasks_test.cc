// What the tasks add to the physics: rewards, ends, success, drawn instances, faults.
#include "msrl/mujoco/tasks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/env/behaviour.h"
#include "msrl/mujoco/ant_maze.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/planar_walker.h"
#include "msrl/mujoco/point_maze.h"
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

TEST(Maze, MapsAreTheReferences) {
  const Maze umaze("umaze", 4.0, 1.0);
  EXPECT_EQ(umaze.free_cells().size(), 7u);
  EXPECT_EQ(umaze.Centre({1, 1}), Vec2(-4.0, 4.0));
  EXPECT_EQ(umaze.Centre({3, 3}), Vec2(4.0, -4.0));
  const Maze medium("medium", 1.0, 1.0);
  EXPECT_EQ(medium.free_cells().size(), 26u);
  EXPECT_EQ(medium.Centre({2, 6}), Vec2(2.5, 1.5));
  const Maze large("large", 1.0, 1.0);
  EXPECT_EQ(large.free_cells().size(), 46u);
  EXPECT_EQ(large.Centre({7, 9}), Vec2(3.5, -3.0));
}

TEST(Maze, APlaceIsInItsCell) {
  const Maze maze("medium", 1.0, 1.0);
  for (int cell = 0; std::cmp_less(cell, maze.free_cells().size()); ++cell) {
    for (const Vec2& off : {Vec2(0, 0), Vec2(0.49, -0.49), Vec2(-0.49, 0.49)}) {
      EXPECT_EQ(maze.FreeCellAt(maze.Centre(cell) + off), cell);
    }
  }
  EXPECT_EQ(maze.FreeCellAt(maze.Centre({0, 0})), Maze::kNoCell);
  for (const double far : {4.1, 1e10, std::nan("")}) {
    EXPECT_EQ(maze.FreeCellAt({far, 0.0}), Maze::kNoCell);
    EXPECT_EQ(maze.FreeCellAt({0.0, -far}), Maze::kNoCell);
  }
}

// Mean and largest number of steps from one free cell to another, as the reference gives them.
TEST(Maze, WaysAreTheShortest) {
  struct Ways {
    const char* name;
    double mean;
    int longest;
  };
  for (const Ways& known :
       {Ways{"umaze", 2.7, 6}, Ways{"medium", 5.1, 11}, Ways{"large", 7.9, 19}}) {
    const Maze maze(known.name, 1.0, 1.0);
    const auto cells = static_cast<int>(maze.free_cells().size());
    double sum = 0.0;
    int longest = 0;
    for (int from = 0; from < cells; ++from) {
      for (int to = 0; to < cells; ++to) {
        int length = 0;
        for (int at = from; at != to; ++length) {
          const int next = maze.NextOnTheWay(at, to);
          ASSERT_EQ((maze.Centre(next) - maze.Centre(at)).norm(), 1.0);
          ASSERT_LT(length, cells);
          at = next;
        }
        sum += length;
        longest = std::max(longest, length);
      }
    }
    EXPECT_EQ(longest, known.longest);
    EXPECT_NEAR(sum / (cells * (cells - 1)), known.mean, 0.06);
  }
}

TEST(Maze, StartsAndGoalsAreFreeAndApart) {
  for (const char* id : {"antmaze-umaze", "antmaze-medium", "antmaze-large", "pointmaze-umaze",
                         "pointmaze-medium", "pointmaze-large"}) {
    const auto env = Make(id);
    const auto* ant = dynamic_cast<AntMaze*>(env.get());
    const Maze& maze = ant != nullptr ? ant->maze() : dynamic_cast<PointMaze&>(*env).maze();
    std::set<int> starts;
    std::set<int> goals;
    for (std::uint64_t seed = 0; seed < 500; ++seed) {
      env->Reset(seed);
      const Vec2 place(env->data().qpos[0], env->data().qpos[1]);
      const Vec2 goal = MazeTask::Goal(env->memory());
      const int start_cell = maze.FreeCellAt(place);
      const int goal_cell = maze.FreeCellAt(goal);
      ASSERT_NE(start_cell, Maze::kNoCell);
      ASSERT_NE(goal_cell, Maze::kNoCell);
      EXPECT_NE(start_cell, goal_cell);
      EXPECT_LE((place - maze.Centre(start_cell)).cwiseAbs().maxCoeff(), 0.25 * maze.cell());
      EXPECT_LE((goal - maze.Centre(goal_cell)).cwiseAbs().maxCoeff(), 0.25 * maze.cell());
      EXPECT_EQ(Vec2(env->observation().tail<2>()), goal);
      EXPECT_FALSE(*env->Success());
      starts.insert(start_cell);
      goals.insert(goal_cell);
    }
    EXPECT_EQ(starts.size(), maze.free_cells().size());
    EXPECT_EQ(goals.size(), maze.free_cells().size());
  }
}

TEST(Maze, EndsAtTheGoalUnlessItContinues) {
  const auto at_goal = [](MujocoEnv& env) {
    env.Reset(1);
    auto position = Copy(env.model().qpos0, env.model().nq);
    position[0] = env.memory()[MazeTask::kGoalX] + 0.1;
    position[1] = env.memory()[MazeTask::kGoalY];
    env.StartAt(position, std::vector<double>(static_cast<std::size_t>(env.model().nv), 0.0));
    const StepResult result = StepZero(env);
    const EnvView shown = env.observation();
    EXPECT_EQ(env.spec().terminates({shown.data(), static_cast<std::size_t>(shown.size())}),
              result.terminated);
    return result;
  };
  for (const std::string family : {"antmaze", "pointmaze"}) {
    SCOPED_TRACE(family);
    const std::string id = family + "-umaze";
    const auto plain = Make(id);
    EXPECT_EQ(at_goal(*plain).reward, 1.0);
    EXPECT_TRUE(at_goal(*plain).terminated);
    const auto continuing = Make(id, {"continuing=true"});
    EXPECT_EQ(at_goal(*continuing).reward, 1.0);
    EXPECT_FALSE(at_goal(*continuing).terminated);
    EXPECT_TRUE(*continuing->Success());
    const auto dense = Make(id, {"reward=dense"});
    EXPECT_NEAR(at_goal(*dense).reward, std::exp(-0.1), 0.02);
    EXPECT_FALSE(dense->spec().random_return);  // measured of other rewards
    const auto dense_on = Make(id, {"reward=dense", "continuing=true"});
    ASSERT_EQ(dense_on->spec().reference_return.has_value(), family == "antmaze");
    if (family == "antmaze") {
      EXPECT_GT(dense_on->spec().reference_return->value, 100.0);
    }
    const auto moving = Make(id, {"continuing=true", "new_goals=true"});
    moving->Reset(1);
    const double old_goal = moving->memory()[MazeTask::kGoalX];
    EXPECT_EQ(at_goal(*moving).reward, 1.0);
    EXPECT_NE(moving->memory()[MazeTask::kGoalX], old_goal);
    EXPECT_FALSE(*moving->Success());
    EXPECT_EQ(testing::UserErrorText([&] { Make(id, {"new_goals=true"}); }),
              family + ": new_goals needs continuing=true");
  }
}

// v' = v + h (100 a - v) / (m + h), x' = x + h v', from the velocity that is clipped first.
TEST(PointMaze, FliesAsTheFormulaSays) {
  const auto env = Make("pointmaze-umaze");
  constexpr double kMass = 4.188790204786391;
  constexpr double kStep = 0.01;
  for (const double start : {0.0, 4.9, 7.0, -6.0}) {
    for (const double action : {-1.0, 0.3, 1.0}) {
      env->Reset(1);
      env->StartAt(std::vector<double>{0.0, 1.0}, std::vector<double>{start, 0.0});
      double x = 0.0;
      double v = start;
      for (int t = 0; t < 5; ++t) {
        env->StepControl(std::vector<double>{action, 0.0});
        v = std::clamp(v, -PointMaze::kTopSpeed, PointMaze::kTopSpeed);
        v += kStep * (100.0 * action - v) / (kMass + kStep);
        x += kStep * v;
        EXPECT_NEAR(env->data().qvel[0], v, 1e-12);
        EXPECT_NEAR(env->data().qpos[0], x, 1e-12);
        EXPECT_EQ(env->data().qpos[1], 1.0);
      }
    }
  }
}

TEST(PointMaze, AWallHoldsThePressedBall) {
  const auto env = Make("pointmaze-umaze");
  env->Reset(1);
  env->StartAt(std::vector<double>{1.0, 1.0}, std::vector<double>{0.0, 0.0});
  for (int t = 0; t < 300; ++t) env->StepControl(std::vector<double>{1.0, 0.0});
  EXPECT_NEAR(env->data().qpos[0], 1.398, 0.005);  // 1.5 - radius - margin
}

// One step as the reference makes it, to the letter.
void LiteralStep(const mjModel& m, mjData& d, std::span<const double> control) {
  for (int i = 0; i < 2; ++i) d.qvel[i] = std::clamp(d.qvel[i], -5.0, 5.0);
  mj_forward(&m, &d);
  std::copy(control.begin(), control.end(), d.ctrl);
  mj_step(&m, &d);
}

TEST(PointMaze, StepsAreTheReferencesBitForBit) {
  for (const char* id : {"pointmaze-umaze", "pointmaze-medium", "pointmaze-large"}) {
    const auto env = Make(id, {"continuing=true"});
    const DataPtr literal = MakeData(env->model());
    Rng rng(1, "pushes");
    int at_walls = 0;
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      // held for a while, so that it meets walls at full speed; also hardly changed, and drawn anew
      const int held = seed % 3 == 0 ? 25 : seed % 3 == 1 ? 5 : 1;
      env->Reset(seed);
      mj_resetData(&env->model(), literal.get());
      std::copy_n(env->data().qpos, 2, literal->qpos);
      mj_forward(&env->model(), literal.get());
      std::vector<double> push(2);
      for (int t = 0; t < 500; ++t) {
        if (t % held == 0) push = {rng.Uniform(-1.5, 1.5), rng.Uniform(-1.5, 1.5)};
        if (held == 5) push[0] += 0.01 * rng.Uniform(-1.0, 1.0);
        LiteralStep(env->model(), *literal, push);
        env->StepControl(push);
        for (int i = 0; i < 2; ++i) {
          ASSERT_EQ(env->data().qpos[i], literal->qpos[i]) << seed << " " << t;
          ASSERT_EQ(env->data().qvel[i], literal->qvel[i]) << seed << " " << t;
          ASSERT_EQ(env->data().qacc_warmstart[i], literal->qacc_warmstart[i]) << seed << " " << t;
        }
        ASSERT_EQ(env->data().ncon, literal->ncon);
        at_walls += env->data().ncon > 1 ? 1 : 0;
      }
    }
    EXPECT_GT(at_walls, 1500);
    EXPECT_LT(at_walls, 13500);
  }
}

// The controls of the step before are part of the state where the ball touches a wall.
TEST(PointMaze, GoesOnBitForBitAtAWall) {
  const auto env = Make("pointmaze-umaze");
  const auto other = Make("pointmaze-umaze");
  env->Reset(1);
  env->StartAt(std::vector<double>{1.3, 1.3}, std::vector<double>{3.0, 3.0});
  const std::vector<double> corner{1.0, 0.8};
  for (int t = 0; t < 10; ++t) env->StepControl(corner);
  ASSERT_GT(env->data().ncon, 2);
  const auto bytes = env->Snapshot();
  other->Restore(bytes);
  const std::vector<double> along{0.4, -0.9};
  for (int t = 0; t < 10; ++t) {
    env->StepControl(along);
    other->StepControl(along);
    EXPECT_EQ(env->Snapshot(), other->Snapshot());
  }
}

TEST(PointMaze, TheExpertFindsItsWayFromWhereverItIsLed) {
  const auto env = Make("pointmaze-large");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    env->Reset(seed);
    Behaviour astray(*env, {.persistence = 20.0}, Rng(seed, "astray"));
    for (int t = 0; t < 300 && !env->Step(astray.Act()).terminated; ++t) {
    }
    if (*env->Success()) continue;
    Behaviour expert(*env, {.skill = 1.0}, Rng(seed, "expert"));
    int steps = 0;
    while (steps < 600 && !env->Step(expert.Act()).terminated) ++steps;
    EXPECT_TRUE(*env->Success()) << seed;
  }
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

// The scripted expert of PointMaze against the reference's figures of the same controller, five
// standard errors wide: returns of episodes that go on at the goal.
TEST(ExpertReturn, AgreesWithTheReference) {
  struct Anchor {
    const char* id;
    double sparse;
    double deviation;  // of one episode
    double dense;
    double dense_deviation;
  };
  constexpr int kEpisodes = 200;
  for (const Anchor& anchor : {Anchor{"pointmaze-umaze", 232.8, 41.6, 246.4, 36.4},
                               Anchor{"pointmaze-medium", 463.6, 69.1, 483.1, 64.7},
                               Anchor{"pointmaze-large", 586.2, 106.9, 604.7, 103.9}}) {
    const auto earns = [&](const std::string& reward) {
      const auto env = Make(anchor.id, {"continuing=true", "reward=" + reward});
      double sum = 0.0;
      for (std::uint64_t seed = 0; seed < kEpisodes; ++seed) {
        env->Reset(2000 + seed);
        Behaviour expert(*env, {.skill = 1.0}, Rng(seed, "expert"));
        for (int t = 0; t < env->spec().step_limit; ++t) sum += env->Step(expert.Act()).reward;
        EXPECT_TRUE(*env->Success()) << anchor.id << " " << seed;
      }
      return sum / kEpisodes;
    };
    EXPECT_NEAR(earns("sparse"), anchor.sparse, 5 * anchor.deviation / std::sqrt(kEpisodes));
    EXPECT_NEAR(earns("dense"), anchor.dense, 5 * anchor.dense_deviation / std::sqrt(kEpisodes));
  }
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
        Anchor{"humanoid", 100, 114.0, 34.0}, Anchor{"pointmaze-umaze", 400, 0.227, 0.42},
        Anchor{"pointmaze-medium", 400, 0.145, 0.35},
        Anchor{"pointmaze-large", 400, 0.120, 0.32}}) {
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
