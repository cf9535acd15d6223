#include "msrl/mujoco/point_maze.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"

namespace msrl {
namespace {

constexpr double kSpeedUnit = 2.0;  // m/s

int StepLimit(const std::string& maze) {
  return maze == "umaze" ? 300 : maze == "medium" ? 600 : 800;
}

}  // namespace

MujocoEnv::Setup PointMaze::MakeSetup(const MazeTask& task, const PointMazeConfig& config) {
  const Maze& maze = task.maze();
  Setup setup;
  EnvSpec& spec = setup.spec;
  spec.id = "pointmaze-" + maze.name();
  spec.description = StrCat("ball is pushed through a maze (", maze.name(), ") to a goal");
  spec.observation_size = 6;
  spec.action = {ActionKind::kContinuous, 2};
  spec.step_limit = StepLimit(maze.name());
  spec.dt = 0.01;
  spec.geometry_unit[4] = spec.geometry_unit[5] = kSpeedUnit;
  task.Describe(spec, /*place=*/0);
  setup.options = IdentityText(ListFields(config));
  setup.model = TaskModel(
      config, spec.id,
      ReplaceOnce(ModelText("point_maze"), "<!--world-->", maze.WallGeoms() + maze.Camera()),
      {.nq = 2, .nv = 2, .nu = 2});
  setup.memory_size = kMemorySize;
  return setup;
}

PointMaze::PointMaze(const std::string& maze, const PointMazeConfig& config)
    : PointMaze(MazeTask("pointmaze", Maze(maze, kCell, kWallHeight), config), config) {}

PointMaze::PointMaze(const MazeTask& task, const PointMazeConfig& config)
    : MujocoEnv(MakeSetup(task, config)), config_(config), task_(task) {}

void PointMaze::Draw(Rng& rng, std::span<double> qpos, std::span<double> /*qvel*/) {
  const Vec2 start = task_.Draw(rng, memory());
  std::copy_n(start.data(), 2, qpos.begin());
}

void PointMaze::Begun() {
  memory()[kControlX] = memory()[kControlY] = 0.0;
  memory()[kWaypoint] = Maze::kNoCell;
  FollowTheWay();
}

// The reference clips the velocity, calls mj_forward with the controls of the step before, and then
// mj_step with the new ones. Both begin with the same positions and velocities, so that the dear
// half, up to the contacts, is made once. What is left of mj_forward is the solver's warm start.
// Away from walls (the floor is always a contact) there is no force, and the solver takes a warm
// start only if it is almost the answer: if the controls are almost the same. Bit for bit the
// reference.
void PointMaze::Simulate(std::span<const double> control) {
  // changes the acceleration by more than a step of any speed can
  constexpr double kOtherControl = 0.01;
  const mjModel* m = &model();
  mjData* d = &mutable_data();
  const std::span last = memory().subspan(kControlX, 2);
  const double now[2] = {std::clamp(control[0], -1.0, 1.0), std::clamp(control[1], -1.0, 1.0)};
  const double change = std::max(std::abs(now[0] - last[0]), std::abs(now[1] - last[1]));
  for (int i = 0; i < 2; ++i) d->qvel[i] = std::clamp(d->qvel[i], -kTopSpeed, kTopSpeed);
  mj_step1(m, d);
  if (d->ncon > 1 || change <= kOtherControl) {
    std::ranges::copy(last, d->ctrl);
    mj_fwdActuation(m, d);
    mj_fwdAcceleration(m, d);
    mj_fwdConstraint(m, d);
  }
  std::copy_n(now, 2, d->ctrl);
  std::copy_n(now, 2, last.begin());
  mj_step2(m, d);
}

Outcome PointMaze::Judge(std::span<const double> /*control*/) {
  const Outcome outcome = task_.Judge(Place(), seed(), memory());
  FollowTheWay();
  return outcome;
}

void PointMaze::Show() {
  double* o = observation_.data();
  o = std::copy_n(Place().data(), 2, o);
  o = std::copy_n(Velocity().data(), 2, o);
  std::copy_n(&memory()[MazeTask::kGoalX], 2, o);
  geometry_ = task_.Geometry(spec_, Place(), Velocity(), memory());
}

// ---- the expert

// From the centre of one cell to that of the next.
void PointMaze::FollowTheWay() {
  constexpr double kPassed = 0.1;  // m
  const Maze& maze = task_.maze();
  const int here = maze.FreeCellAt(Place());
  const int goal = maze.FreeCellAt(MazeTask::Goal(memory()));
  if (here == Maze::kNoCell || goal == Maze::kNoCell) {
    memory()[kWaypoint] = Maze::kNoCell;
    return;
  }
  int next = Waypoint();
  if (next != Maze::kNoCell && next != goal && (maze.Centre(next) - Place()).norm() <= kPassed) {
    next = maze.NextOnTheWay(next, goal);
  }
  // at the start, and where something else than the expert led away
  if (next != here && next != maze.NextOnTheWay(here, goal)) next = maze.NextOnTheWay(here, goal);
  memory()[kWaypoint] = next;
}

int PointMaze::Waypoint() const {
  // a damaged snapshot may hold any number
  const double next = memory()[kWaypoint];
  const auto cells = static_cast<double>(task_.maze().free_cells().size());
  return next >= 0.0 && next < cells ? static_cast<int>(next) : Maze::kNoCell;
}

Vec2 PointMaze::Push() const {
  constexpr double kStiffness = 10.0;
  constexpr double kDamping = 1.0;
  const Vec2 goal = MazeTask::Goal(memory());
  const Maze& maze = task_.maze();
  const int next = Waypoint();
  const bool straight = next == Maze::kNoCell || next == maze.FreeCellAt(goal);
  const Vec2 target = straight ? goal : maze.Centre(next);
  return Clipped(kStiffness * (target - Place()) - kDamping * Velocity());
}

void PointMaze::Best(ActionBuffer& action) {
  const Vec2 push = Push();
  std::copy_n(push.data(), 2, action.values().begin());
}

void PointMaze::Worst(ActionBuffer& action) {
  const Vec2 push = -Push();
  std::copy_n(push.data(), 2, action.values().begin());
}

double PointMaze::Value() {
  constexpr int kSteps = 1500;  // gamma^1500 is nothing
  if (rehearsal_ == nullptr) rehearsal_ = std::make_unique<PointMaze>(maze().name(), config_);
  rehearsal_->Restore(Snapshot());
  double sum = 0.0;
  double discount = 1.0;
  for (int t = 0; t < kSteps; ++t) {
    const Vec2 push = rehearsal_->Push();
    const StepResult result = rehearsal_->Step(Action::Continuous({push.data(), 2}));
    sum += discount * result.reward / spec_.reward_scale;
    if (result.terminated) break;
    discount *= spec_.gamma;
  }
  return sum;
}

}  // namespace msrl
