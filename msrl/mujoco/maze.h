// The mazes of AntMaze and PointMaze: where the walls are, the ways between them, and the task of
// getting to a goal.
#ifndef MSRL_MUJOCO_MAZE_H_
#define MSRL_MUJOCO_MAZE_H_

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/rng.h"
#include "msrl/mujoco/mujoco_env.h"

namespace msrl {

// '#' is a wall. Cells are squares; the maze is centred on the origin, its first row on the +y
// side.
class Maze {
 public:
  struct Cell {
    int row = 0;
    int column = 0;
  };

  // `name` is "umaze", "medium" or "large"; the side of a cell and the height of a wall are in m.
  Maze(std::string_view name, double cell, double wall_height);

  const std::string& name() const { return name_; }
  double cell() const { return cell_; }
  int rows() const { return static_cast<int>(lines_.size()); }
  int columns() const { return static_cast<int>(lines_[0].size()); }
  bool IsWall(Cell cell) const;
  Vec2 Centre(Cell cell) const {
    return {(cell.column + 0.5) * cell_ - 0.5 * cell_ * columns(),
            0.5 * cell_ * rows() - (cell.row + 0.5) * cell_};
  }
  // Free cells, row by row. Below, a cell is known by its number in this list.
  const std::vector<Cell>& free_cells() const { return free_cells_; }
  static constexpr int kNoCell = -1;
  // The free cell that a place is in; kNoCell in a wall or outside.
  int FreeCellAt(const Vec2& place) const;
  // The neighbour of `from` on a shortest way to `to`; `to` itself if that is where one is.
  int NextOnTheWay(int from, int to) const {
    return next_[static_cast<std::size_t>(to) * free_cells_.size() +
                 static_cast<std::size_t>(from)];
  }
  Vec2 Centre(int free_cell) const {
    return Centre(free_cells_[static_cast<std::size_t>(free_cell)]);
  }

  // The walls as MJCF geoms of the class "wall", row by row.
  std::string WallGeoms() const;
  // An MJCF camera "watch" that sees all of it.
  std::string Camera() const;

 private:
  int NumberOf(Cell cell) const;
  void FindWaysTo(int to);

  std::string name_;
  std::vector<std::string_view> lines_;
  double cell_;
  double wall_height_;
  std::vector<Cell> free_cells_;
  std::vector<int> number_;  // of a cell in free_cells_, row by row; kNoCell: a wall
  std::vector<int> next_;    // by (to, from)
};

struct MazeConfig {
  GoalReward reward = GoalReward::kSparse;
  bool continuing = false;
  bool new_goals = false;

  template <typename V>
  void Fields(V&& visit) {
    visit("reward", reward, "1 within 0.45 m of the goal, or exp(-distance)");
    visit("continuing", continuing, "whether the episode goes on at the goal");
    visit("new_goals", new_goals, "whether a continuing episode draws a new goal at the goal");
  }
};

// What is the same whoever runs through the maze.
class MazeTask {
 public:
  static constexpr double kGoalRadius = 0.45;  // m
  // Entries of an environment's memory, its first ones: the goal, and how many goals this episode
  // has drawn.
  enum Memory { kGoalX, kGoalY, kGoalsDrawn, kMemorySize };

  // UserError on settings that don't go together.
  MazeTask(std::string family, Maze maze, const MazeConfig& config);

  const Maze& maze() const { return maze_; }

  // Fills in the facts of a spec that has its sizes: family, reward, goal, geometry's lengths,
  // measured returns. Where it is shown stand x and y; the goal's are the observation's last
  // entries.
  void Describe(EnvSpec& spec, int place) const;
  // Draws goal and start, which are never in the same cell.
  Vec2 Draw(Rng& rng, std::span<double> memory) const;
  // A step that ends at `place`; may draw another goal.
  Outcome Judge(const Vec2& place, std::uint64_t seed, std::span<double> memory) const;
  // The slots where one is at `place` and moves so.
  std::array<double, kGeometrySize> Geometry(const EnvSpec& spec, const Vec2& place,
                                             const Vec2& motion,
                                             std::span<const double> memory) const;
  static bool IsThere(const Vec2& place, std::span<const double> memory);
  static GoalMark Mark(std::span<const double> memory) {
    return {.x = memory[kGoalX], .y = memory[kGoalY], .radius = kGoalRadius};
  }
  static Vec2 Goal(std::span<const double> memory) { return {memory[kGoalX], memory[kGoalY]}; }

 private:
  Vec2 DrawIn(Maze::Cell cell, Rng& rng) const;
  Maze::Cell DrawCell(Rng& rng) const;
  void DrawGoal(Rng& rng, std::span<double> memory) const;
  std::string RewardVariant() const;

  std::string family_;
  Maze maze_;
  MazeConfig config_;
  double length_;  // m, unit of the geometry
};

}  // namespace msrl

#endif  // MSRL_MUJOCO_MAZE_H_
