// A ball that is pushed through a maze to a goal (Gymnasium-Robotics PointMaze, version 3).
#ifndef MSRL_MUJOCO_POINT_MAZE_H_
#define MSRL_MUJOCO_POINT_MAZE_H_

#include <memory>
#include <string>

#include "msrl/mujoco/maze.h"
#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

struct PointMazeConfig : ModelConfig, MazeConfig {
  template <typename V>
  void Fields(V&& visit) {
    ModelConfig::Fields(visit);
    MazeConfig::Fields(visit);
  }
};

class PointMaze : public MujocoEnv, private Expert {
 public:
  static constexpr double kCell = 1.0;        // m
  static constexpr double kWallHeight = 0.4;  // m
  static constexpr double kTopSpeed = 5.0;    // m/s and axis, at the start of a step

  // `maze` as in Maze.
  PointMaze(const std::string& maze, const PointMazeConfig& config);

  std::optional<bool> Success() const override { return MazeTask::IsThere(Place(), memory()); }
  std::optional<GoalMark> goal_mark() const override { return MazeTask::Mark(memory()); }
  // A PD controller along a shortest way.
  Expert* expert() override { return this; }
  const Maze& maze() const { return task_.maze(); }

 private:
  // After MazeTask's: the controls of the last step, and the free cell that the expert is on its
  // way to.
  enum Memory { kControlX = MazeTask::kMemorySize, kControlY, kWaypoint, kMemorySize };

  PointMaze(const MazeTask& task, const PointMazeConfig& config);
  static Setup MakeSetup(const MazeTask& task, const PointMazeConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  void Simulate(std::span<const double> control) override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  Vec2 Place() const { return {qpos()[0], qpos()[1]}; }
  Vec2 Velocity() const { return {qvel()[0], qvel()[1]}; }

  void Best(ActionBuffer& action) override;
  void Worst(ActionBuffer& action) override;
  double Value() override;
  void FollowTheWay();
  int Waypoint() const;
  Vec2 Push() const;

  PointMazeConfig config_;
  MazeTask task_;
  std::unique_ptr<PointMaze> rehearsal_;  // of Value
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_POINT_MAZE_H_
