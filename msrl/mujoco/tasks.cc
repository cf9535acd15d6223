#include "msrl/mujoco/tasks.h"

#include <utility>

#include "msrl/mujoco/ant.h"
#include "msrl/mujoco/ant_maze.h"
#include "msrl/mujoco/humanoid.h"
#include "msrl/mujoco/planar_walker.h"
#include "msrl/mujoco/point_maze.h"
#include "msrl/mujoco/pusher.h"
#include "msrl/mujoco/reacher.h"

namespace msrl {
namespace {

// `make` turns a config into the environment.
template <typename Config, typename Make>
MujocoTask Row(std::string id, Make make) {
  MujocoTask task;
  task.id = std::move(id);
  task.make = [make](std::span<const std::string> options) -> std::unique_ptr<MujocoEnv> {
    Config config;
    for (const std::string& option : options) SetField(config, option);
    return make(config);
  };
  task.options = [] { return ListFields(Config{}); };
  return task;
}

template <typename Concrete, typename Variant>
MujocoTask VariantRow(std::string id, Variant variant) {
  return Row<MujocoConfig>(std::move(id), [variant](const MujocoConfig& config) {
    return std::make_unique<Concrete>(variant, config);
  });
}

MujocoTask PlanarRow(std::string id, PlanarRobot robot, PlanarTask task) {
  return Row<MujocoConfig>(std::move(id), [robot, task](const MujocoConfig& config) {
    return std::make_unique<PlanarWalker>(robot, task, config);
  });
}

template <typename Concrete, typename Config>
MujocoTask MazeRow(const std::string& family, const std::string& maze) {
  return Row<Config>(StrCat(family, "-", maze), [maze](const Config& config) {
    return std::make_unique<Concrete>(maze, config);
  });
}

}  // namespace

const std::vector<MujocoTask>& MujocoTasks() {
  using enum PlanarRobot;
  static const std::vector<MujocoTask> tasks = {
      VariantRow<Reacher>("reacher", ReacherTask::kBase),
      VariantRow<Reacher>("reacher-goal", ReacherTask::kGoal),
      VariantRow<Reacher>("reacher-sparse", ReacherTask::kSparse),
      VariantRow<Pusher>("pusher", PusherTask::kBase),
      VariantRow<Pusher>("pusher-push", PusherTask::kPush),
      VariantRow<Pusher>("pusher-obstacle", PusherTask::kObstacle),
      PlanarRow("hopper", kHopper, PlanarTask::kRun),
      PlanarRow("hopper-velocity", kHopper, PlanarTask::kVelocity),
      PlanarRow("hopper-terrain", kHopper, PlanarTask::kTerrain),
      PlanarRow("walker2d", kWalker2d, PlanarTask::kRun),
      PlanarRow("walker2d-velocity", kWalker2d, PlanarTask::kVelocity),
      PlanarRow("walker2d-goal", kWalker2d, PlanarTask::kGoal),
      PlanarRow("walker2d-terrain", kWalker2d, PlanarTask::kTerrain),
      Row<MujocoConfig>("ant",
                        [](const MujocoConfig& config) { return std::make_unique<Ant>(config); }),
      MazeRow<AntMaze, AntMazeConfig>("antmaze", "umaze"),
      MazeRow<AntMaze, AntMazeConfig>("antmaze", "medium"),
      MazeRow<AntMaze, AntMazeConfig>("antmaze", "large"),
      VariantRow<Humanoid>("humanoid", HumanoidTask::kRun),
      VariantRow<Humanoid>("humanoid-stand", HumanoidTask::kStand),
      VariantRow<Humanoid>("humanoid-walk", HumanoidTask::kWalk),
      VariantRow<Humanoid>("humanoid-direction", HumanoidTask::kDirection),
      MazeRow<PointMaze, PointMazeConfig>("pointmaze", "umaze"),
      MazeRow<PointMaze, PointMazeConfig>("pointmaze", "medium"),
      MazeRow<PointMaze, PointMazeConfig>("pointmaze", "large"),
  };
  return tasks;
}

}  // namespace msrl
