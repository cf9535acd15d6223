// An ant that must walk through a maze to a goal.
#ifndef MSRL_MUJOCO_ANT_MAZE_H_
#define MSRL_MUJOCO_ANT_MAZE_H_

#include <string>
#include <string_view>
#include <vector>

#include "msrl/mujoco/ant.h"

namespace msrl {

// '#' is a wall. Cells are squares of 4 m; the maze is centred on the origin, its first row on the
// +y side.
class Maze {
 public:
  static constexpr double kCell = 4.0;        // m
  static constexpr double kWallHeight = 2.0;  // m
  struct Cell {
    int row = 0;
    int column = 0;
  };

  // "umaze", "medium" or "large".
  explicit Maze(std::string_view name);

  bool IsWall(Cell cell) const;
  // Centre of a cell.
  double X(Cell cell) const { return (cell.column + 0.5) * kCell - 0.5 * kCell * columns(); }
  double Y(Cell cell) const { return 0.5 * kCell * rows() - (cell.row + 0.5) * kCell; }
  int rows() const { return static_cast<int>(lines_.size()); }
  int columns() const { return static_cast<int>(lines_[0].size()); }
  // Free cells, row by row.
  const std::vector<Cell>& free_cells() const { return free_cells_; }
  // The walls as MJCF geoms, row by row.
  std::string WallGeoms() const;
  // An MJCF camera "watch" that sees all of it.
  std::string Camera() const;

 private:
  std::vector<std::string_view> lines_;
  std::vector<Cell> free_cells_;
};

struct AntMazeConfig : MujocoConfig {
  GoalReward reward = GoalReward::kSparse;
  bool continuing = false;
  bool new_goals = false;

  template <typename V>
  void Fields(V&& visit) {
    MujocoConfig::Fields(visit);
    visit("reward", reward, "1 within 0.45 m of the goal, or exp(-distance)");
    visit("continuing", continuing, "whether the episode goes on at the goal");
    visit("new_goals", new_goals, "whether a continuing episode draws a new goal at the goal");
  }
};

class AntMaze : public Ant {
 public:
  // `maze` as in Maze.
  AntMaze(const std::string& maze, const AntMazeConfig& config);

  static constexpr double kGoalRadius = 0.45;  // m
  std::optional<bool> Success() const override { return Distance() <= kGoalRadius; }
  const Maze& maze() const { return maze_; }
  std::optional<GoalMark> goal_mark() const override {
    return GoalMark{memory()[kGoalX], memory()[kGoalY], kGoalRadius};
  }
  // Entries of memory(): the goal, how many goals this episode has drawn, where the torso was, and
  // its smoothed velocity.
  enum Memory { kGoalX, kGoalY, kGoalsDrawn, kLastX, kLastY, kMotionX, kMotionY, kMemorySize };

 private:
  static Setup MakeSetup(const std::string& maze, const AntMazeConfig& config);
  void Draw(Rng& rng, std::span<double> qpos, std::span<double> qvel) override;
  void Begun() override;
  Outcome Judge(std::span<const double> control) override;
  void Show() override;
  double Distance() const;
  void DrawGoal(Rng& rng);
  void SmoothMotion();

  AntMazeConfig config_;
  Maze maze_;
  double length_;  // m, unit of the geometry
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_ANT_MAZE_H_
