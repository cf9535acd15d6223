#include "msrl/mujoco/ant_maze.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/mujoco/models.h"
#include "msrl/mujoco/returns.h"

namespace msrl {
namespace {

constexpr double kMotionUnit = 0.5;  // m/s, of the smoothed velocity

constexpr double kNoise = 1.0;  // m, of start and goal around the centre of a cell

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

// Empty for the defaults.
std::string RewardVariant(const AntMazeConfig& config) {
  if (config.reward == GoalReward::kSparse && !config.continuing) return "";
  return StrCat(EnumName(config.reward), config.continuing ? ", continuing" : "",
                config.new_goals ? ", new goals" : "");
}

}  // namespace

Maze::Maze(std::string_view name) : lines_(Lines(name)) {
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) {
      if (!IsWall({row, column})) free_cells_.push_back({row, column});
    }
  }
}

bool Maze::IsWall(Cell cell) const {
  return lines_[static_cast<std::size_t>(cell.row)][static_cast<std::size_t>(cell.column)] == '#';
}

std::string Maze::WallGeoms() const {
  std::string text;
  for (int row = 0; row < rows(); ++row) {
    for (int column = 0; column < columns(); ++column) {
      const Cell cell{row, column};
      if (!IsWall(cell)) continue;
      text += StrCat("<geom class=\"wall\" pos=\"", X(cell), " ", Y(cell), " ", kWallHeight / 2,
                     "\" size=\"", kCell / 2, " ", kCell / 2, " ", kWallHeight / 2, "\"/>\n");
    }
  }
  return text;
}

std::string Maze::Camera() const {
  constexpr double kTangent = 0.4142;  // of half of MuJoCo's usual angle of view, 45 degrees
  constexpr double kSine = 0.3;        // of the tilt against straight down
  constexpr double kCosine = 0.954;
  // the widest that a picture of 4:3 needs, and a margin
  const double extent = 1.2 * kCell * std::max<double>(rows(), 0.75 * columns());
  const double distance = extent / (2.0 * kTangent);
  return StrCat("<camera name=\"watch\" pos=\"0 ", -kSine * distance, " ", kCosine * distance,
                "\" xyaxes=\"1 0 0 0 ", kCosine, " ", kSine, "\"/>\n");
}

MujocoEnv::Setup AntMaze::MakeSetup(const std::string& maze, const AntMazeConfig& config) {
  if (config.new_goals && !config.continuing) {
    throw UserError("antmaze: new_goals needs continuing=true");
  }
  Setup setup = Ant::MakeSetup("antmaze-" + maze, 4, config);
  EnvSpec& spec = setup.spec;
  spec.family = "antmaze";
  spec.description = StrCat("ant walks through a maze (", maze, ") to a goal");
  spec.step_limit = maze == "umaze" ? 700 : 1000;
  spec.reward_low = 0.0;
  spec.reward_high = 1.0;
  spec.reward_scale = 1.0;
  spec.has_success = true;
  const double length = Maze::kCell * (maze == "umaze" ? 1.0 : 2.0);
  for (std::size_t i = 0; i < 4; ++i) spec.geometry_unit[i] = length;
  spec.geometry_unit[4] = spec.geometry_unit[5] = kMotionUnit;
  spec.goal_entries = {spec.observation_size - 2, spec.observation_size - 1};
  SetMeasuredReturns(spec, RewardVariant(config));
  setup.options = IdentityText(ListFields(config));
  // appended to the world: the ant's body ids stay
  const Maze layout(maze);
  std::string text = ReplaceOnce(ModelText("ant"), "name=\"watch\"", "name=\"near\"");
  text = ReplaceOnce(std::move(text), "<!--world-->", layout.WallGeoms() + layout.Camera());
  setup.model = TaskModel(config, spec.id, text, kSizes);
  setup.memory_size = kMemorySize;
  return setup;
}

AntMaze::AntMaze(const std::string& maze, const AntMazeConfig& config)
    : Ant(MakeSetup(maze, config), config),
      config_(config),
      maze_(maze),
      length_(spec_.geometry_unit[0]) {}

void AntMaze::DrawGoal(Rng& rng) {
  const auto& cells = maze_.free_cells();
  const Maze::Cell cell = cells[static_cast<std::size_t>(rng.Index(std::ssize(cells)))];
  memory()[kGoalX] = maze_.X(cell) + rng.Uniform(-kNoise, kNoise);
  memory()[kGoalY] = maze_.Y(cell) + rng.Uniform(-kNoise, kNoise);
}

void AntMaze::Draw(Rng& rng, std::span<double> qpos, std::span<double> /*qvel*/) {
  DrawGoal(rng);
  const auto& cells = maze_.free_cells();
  Maze::Cell start;
  do {
    start = cells[static_cast<std::size_t>(rng.Index(std::ssize(cells)))];
  } while (std::hypot(maze_.X(start) - memory()[kGoalX], maze_.Y(start) - memory()[kGoalY]) <=
           0.5 * Maze::kCell);
  qpos[0] = maze_.X(start) + rng.Uniform(-kNoise, kNoise);
  qpos[1] = maze_.Y(start) + rng.Uniform(-kNoise, kNoise);
  memory()[kGoalsDrawn] = 1;
}

double AntMaze::Distance() const {
  return std::hypot(qpos()[0] - memory()[kGoalX], qpos()[1] - memory()[kGoalY]);
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
  const double distance = Distance();
  const bool there = distance <= kGoalRadius;
  const double reward = config_.reward == GoalReward::kDense ? std::exp(-distance)
                        : there                              ? 1.0
                                                             : 0.0;
  if (there && config_.new_goals) {
    // a stream of its own for each further goal: nothing to keep in snapshots but the count
    Rng rng(seed(), StrCat("antmaze-goal-", memory()[kGoalsDrawn]));
    memory()[kGoalsDrawn] += 1;
    do {
      DrawGoal(rng);
    } while (Distance() <= kGoalRadius);
  }
  return {reward, there && !config_.continuing};
}

void AntMaze::Show() {
  double* o = ShowBody();
  const auto q = qpos();
  *o++ = q[0];
  *o++ = q[1];
  *o++ = memory()[kGoalX];
  *o++ = memory()[kGoalY];
  geometry_ = {InUnits(q[0], length_),
               InUnits(q[1], length_),
               InUnits(memory()[kGoalX] - q[0], length_),
               InUnits(memory()[kGoalY] - q[1], length_),
               InUnits(memory()[kMotionX], kMotionUnit),
               InUnits(memory()[kMotionY], kMotionUnit),
               0.0,
               Distance() <= kGoalRadius ? 1.0 : 0.0};
}

}  // namespace msrl
