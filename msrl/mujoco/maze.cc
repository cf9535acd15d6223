#include "msrl/mujoco/maze.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

std::vector<std::string_view> Lines(std::string_view name) {
  if (name == "umaze") return {"#####", "#...#", "###.#", "#...#", "#####"};
  if (name == "medium") {
    return {"########", "#..##..#", "#..#...#", "##...###",
            "#..#...#", "#.#..#.#", "#...#..#", "########"};
  }
  MSRL_CHECK(name == "large", "no maze ", name);
  return {"############", "#....#.....#", "#.##.#.#.#.#", "#......#...#", "#.####.###.#",
          "#..#.#.....#", "##.#.#.#.###", "#..#...#...#", "############"};
}

double Distance(const Vec2& a, const Vec2& b) { return std::hypot(a.x() - b.x(), a.y() - b.y()); }

Outcome JudgeDistance(double distance, const MazeConfig& config) {
  const bool there = distance <= MazeTask::kGoalRadius;
  const double near = there ? 1.0 : 0.0;
  return {config.reward == GoalReward::kDense ? std::exp(-distance) : near,
          there && !config.continuing};
}

class MazeGoal : public GoalTask {
 public:
  // Entries of the observation where the two begin.
  MazeGoal(int place, int goal, const MazeConfig& config)
      : place_(place), goal_(goal), config_(config) {}

  Vec2 Achieved(const EnvView& o) const override { return {o[place_], o[place_ + 1]}; }
  Vec2 Desired(const EnvView& o) const override { return {o[goal_], o[goal_ + 1]}; }
  void Show(const Vec2& /*achieved*/, const Vec2& desired,
            std::span<double> entries) const override {
    std::copy_n(desired.data(), 2, entries.begin());
  }
  Outcome Judge(const Vec2& achieved, const Vec2& desired) const override {
    return JudgeDistance(Distance(achieved, desired), config_);
  }

 private:
  int place_;
  int goal_;
  MazeConfig config_;
};

}  // namespace

// ---- Maze

Maze::Maze(std::string_view name, double cell, double wall_height)
    : name_(name), lines_(Lines(name)), cell_(cell), wall_height_(wall_height) {
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) {
      const bool wall = IsWall({row, column});
      number_.push_back(wall ? kNoCell : static_cast<int>(free_cells_.size()));
      if (!wall) free_cells_.push_back({row, column});
    }
  }
  next_.assign(free_cells_.size() * free_cells_.size(), kNoCell);
  for (int to = 0; std::cmp_less(to, free_cells_.size()); ++to) FindWaysTo(to);
}

bool Maze::IsWall(Cell cell) const {
  return lines_[static_cast<std::size_t>(cell.row)][static_cast<std::size_t>(cell.column)] == '#';
}

int Maze::NumberOf(Cell cell) const {
  return number_[static_cast<std::size_t>(cell.row * columns() + cell.column)];
}

int Maze::FreeCellAt(const Vec2& place) const {
  const double row = 0.5 * rows() - place.y() / cell_;
  const double column = place.x() / cell_ + 0.5 * columns();
  if (!(row >= 0 && row < rows() && column >= 0 && column < columns())) return kNoCell;
  return NumberOf({.row = static_cast<int>(row), .column = static_cast<int>(column)});
}

// Breadth first, from the goal outwards.
void Maze::FindWaysTo(int to) {
  const std::span next = std::span(next_).subspan(static_cast<std::size_t>(to) * free_cells_.size(),
                                                  free_cells_.size());
  next[static_cast<std::size_t>(to)] = to;
  std::vector<int> reached = {to};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const Cell here = free_cells_[static_cast<std::size_t>(reached[i])];
    constexpr std::array<Cell, 4> kSteps = {{{0, 1}, {0, -1}, {1, 0}, {-1, 0}}};
    for (const Cell step : kSteps) {
      const int from = NumberOf({here.row + step.row, here.column + step.column});
      if (from == kNoCell || next[static_cast<std::size_t>(from)] != kNoCell) continue;
      next[static_cast<std::size_t>(from)] = reached[i];
      reached.push_back(from);
    }
  }
  MSRL_CHECK_EQ(reached.size(), free_cells_.size());
}

std::string Maze::WallGeoms() const {
  std::string text;
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) {
      const Cell cell{row, column};
      if (!IsWall(cell)) continue;
      const Vec2 centre = Centre(cell);
      text +=
          StrCat("<geom class=\"wall\" pos=\"", centre.x(), " ", centre.y(), " ", wall_height_ / 2,
                 "\" size=\"", cell_ / 2, " ", cell_ / 2, " ", wall_height_ / 2, "\"/>\n");
    }
  }
  return text;
}

std::string Maze::Camera() const {
  constexpr double kTangent = 0.4142;  // of half of MuJoCo's usual angle of view, 45 degrees
  constexpr double kSine = 0.3;        // of the tilt against straight down
  constexpr double kCosine = 0.954;
  // the widest that a picture of 4:3 needs, and a margin
  const double extent = 1.2 * cell_ * std::max<double>(rows(), 0.75 * columns());
  const double distance = extent / (2.0 * kTangent);
  return StrCat("<camera name=\"watch\" pos=\"0 ", -kSine * distance, " ", kCosine * distance,
                "\" xyaxes=\"1 0 0 0 ", kCosine, " ", kSine, "\"/>\n");
}

// ---- MazeTask

MazeTask::MazeTask(std::string family, Maze maze, const MazeConfig& config)
    : family_(std::move(family)),
      maze_(std::move(maze)),
      config_(config),
      length_(maze_.cell() * (maze_.name() == "umaze" ? 1.0 : 2.0)) {
  if (config.new_goals && !config.continuing) {
    throw UserError(StrCat(family_, ": new_goals needs continuing=true"));
  }
}

// Empty for the defaults.
std::string MazeTask::RewardVariant() const {
  if (config_.reward == GoalReward::kSparse && !config_.continuing) return "";
  return StrCat(EnumName(config_.reward), config_.continuing ? ", continuing" : "",
                config_.new_goals ? ", new goals" : "");
}

void MazeTask::Describe(EnvSpec& spec, int place) const {
  spec.family = family_;
  spec.reward_low = 0.0;
  spec.reward_high = 1.0;
  spec.reward_scale = 1.0;
  spec.has_success = true;
  for (std::size_t i = 0; i < 4; ++i) spec.geometry_unit[i] = length_;
  const int goal = spec.observation_size - 2;
  spec.goal_entries = {goal, goal + 1};
  const auto goal_task = std::make_shared<MazeGoal>(place, goal, config_);
  if (!config_.new_goals) spec.goal_task = goal_task;  // else an episode has more than one
  spec.terminates = [goal_task](std::span<const double> o) {
    const EnvView shown(o.data(), std::ssize(o));
    return goal_task->Judge(goal_task->Achieved(shown), goal_task->Desired(shown)).terminated;
  };
  SetMeasuredReturns(spec, RewardVariant());
}

Maze::Cell MazeTask::DrawCell(Rng& rng) const {
  const auto& cells = maze_.free_cells();
  return cells[static_cast<std::size_t>(rng.Index(std::ssize(cells)))];
}

Vec2 MazeTask::DrawIn(Maze::Cell cell, Rng& rng) const {
  const double noise = 0.25 * maze_.cell();
  Vec2 place = maze_.Centre(cell);
  for (double& each : place) each += rng.Uniform(-noise, noise);
  return place;
}

void MazeTask::DrawGoal(Rng& rng, std::span<double> memory) const {
  const Vec2 goal = DrawIn(DrawCell(rng), rng);
  std::copy_n(goal.data(), 2, memory.begin());
}

Vec2 MazeTask::Draw(Rng& rng, std::span<double> memory) const {
  DrawGoal(rng, memory);
  memory[kGoalsDrawn] = 1;
  Maze::Cell start;
  do {
    start = DrawCell(rng);
  } while (Distance(maze_.Centre(start), Goal(memory)) <= 0.5 * maze_.cell());
  return DrawIn(start, rng);
}

std::array<double, kGeometrySize> MazeTask::Geometry(const EnvSpec& spec, const Vec2& place,
                                                     const Vec2& motion,
                                                     std::span<const double> memory) const {
  const Vec2 way = Goal(memory) - place;
  std::array<double, kGeometrySize> slots = {place.x(),  place.y(),  way.x(), way.y(),
                                             motion.x(), motion.y(), 0.0,     0.0};
  for (std::size_t i = 0; i < 6; ++i) {
    slots[i] =
        std::clamp(slots[i] / spec.geometry_unit[i], -spec.geometry_bound, spec.geometry_bound);
  }
  slots[7] = IsThere(place, memory) ? 1.0 : 0.0;
  return slots;
}

bool MazeTask::IsThere(const Vec2& place, std::span<const double> memory) {
  return Distance(place, Goal(memory)) <= kGoalRadius;
}

Outcome MazeTask::Judge(const Vec2& place, std::uint64_t seed, std::span<double> memory) const {
  const double distance = Distance(place, Goal(memory));
  if (distance <= kGoalRadius && config_.new_goals) {
    // a stream of its own for each further goal: nothing to keep in snapshots but the count
    Rng rng(seed, StrCat(family_, "-goal-", memory[kGoalsDrawn]));
    memory[kGoalsDrawn] += 1;
    do {
      DrawGoal(rng, memory);
    } while (IsThere(place, memory));
  }
  return JudgeDistance(distance, config_);
}

}  // namespace msrl
