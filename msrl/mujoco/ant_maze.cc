#include "msrl/mujoco/ant_maze.h"

#include <algorithm>

#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"

namespace msrl {
namespace {

constexpr double kMotionUnit = 0.5;  // m/s, of the smoothed velocity

}  // namespace

MujocoEnv::Setup AntMaze::MakeSetup(const MazeTask& task, const AntMazeConfig& config) {
  const Maze& maze = task.maze();
  Setup setup = Ant::MakeSetup("antmaze-" + maze.name(), 4, config);
  EnvSpec& spec = setup.spec;
  spec.description = StrCat("ant walks through a maze (", maze.name(), ") to a goal");
  spec.step_limit = maze.name() == "umaze" ? 700 : 1000;
  spec.geometry_unit[4] = spec.geometry_unit[5] = kMotionUnit;
  task.Describe(spec, spec.observation_size - 4);
  setup.options = IdentityText(ListFields(config));
  // appended to the world: the ant's body ids stay
  std::string text = ReplaceOnce(ModelText("ant"), "name=\"watch\"", "name=\"near\"");
  text = ReplaceOnce(std::move(text), "<!--world-->", maze.WallGeoms() + maze.Camera());
  setup.model = TaskModel(config, spec.id, text, kSizes);
  setup.memory_size = kMemorySize;
  return setup;
}

AntMaze::AntMaze(const std::string& maze, const AntMazeConfig& config)
    : AntMaze(MazeTask("antmaze", Maze(maze, kCell, kWallHeight), config), config) {}

AntMaze::AntMaze(const MazeTask& task, const AntMazeConfig& config)
    : Ant(MakeSetup(task, config), config), task_(task) {}

void AntMaze::Draw(Rng& rng, std::span<double> qpos, std::span<double> /*qvel*/) {
  const Vec2 start = task_.Draw(rng, memory());
  std::copy_n(start.data(), 2, qpos.begin());
}

void AntMaze::Begun() {
  memory()[kLastX] = qpos()[0];
  memory()[kLastY] = qpos()[1];
  memory()[kMotionX] = memory()[kMotionY] = 0.0;
}

// The torso sways with every step of the legs; where the ant is going shows over about 20 steps.
void AntMaze::SmoothMotion() {
  constexpr double kRate = 0.05;
  for (const int i : {0, 1}) {
    const double x = qpos()[static_cast<std::size_t>(i)];
    double& last = memory()[static_cast<std::size_t>(kLastX + i)];
    double& motion = memory()[static_cast<std::size_t>(kMotionX + i)];
    motion += kRate * ((x - last) / spec_.dt - motion);
    last = x;
  }
}

Outcome AntMaze::Judge(std::span<const double> /*control*/) {
  SmoothMotion();
  return task_.Judge(Place(), seed(), memory());
}

void AntMaze::Show() {
  double* o = ShowBody();
  o = std::copy_n(Place().data(), 2, o);
  std::copy_n(&memory()[MazeTask::kGoalX], 2, o);
  geometry_ = task_.Geometry(spec_, Place(), {memory()[kMotionX], memory()[kMotionY]}, memory());
}

}  // namespace msrl
