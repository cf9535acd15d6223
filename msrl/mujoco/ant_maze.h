// An ant that must walk through a maze to a goal.
#ifndef MSRL_MUJOCO_ANT_MAZE_H_
#define MSRL_MUJOCO_ANT_MAZE_H_

#include <string>

#include "msrl/mujoco/ant.h"
#include "msrl/mujoco/maze.h"

namespace msrl {

struct AntMazeConfig : MujocoConfig, MazeConfig {
  template <typename V>
  void Fields(V&& visit) {
    MujocoConfig::Fields(visit);
    MazeConfig::Fields(visit);
  }
};

class AntMaze : public Ant {
 public:
  static constexpr double kCell = 4.0;        // m
  static constexpr double kWallHeight = 2.0;  // m

  // `maze` as in Maze.
  AntMaze(const std::string& maze, const AntMazeConfig& config);

  std::optional<bool> Success() const override { return MazeTask::IsThere(Place(), memory()); }
  std::optional<GoalMark> goal_mark() const override { return MazeTask::Mark(memory()); }
  const Maze& maze() const { return task_.maze(); }

 private:
  // After MazeTask's: where the torso was, and its smoothed velocity.
  enum Memory { kLastX = MazeTask::kMemorySize, kLastY, kMotionX, kMotionY, kMemorySize };

  AntMaze(const MazeTask& task, const AntMazeConfig& config);
  static Setup MakeSetup(const MazeTask& task, const AntMazeConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  Vec2 Place() const { return {qpos()[0], qpos()[1]}; }
  void SmoothMotion();

  MazeTask task_;
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_ANT_MAZE_H_
