#include "msrl/env/micro_grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "msrl/core/config.h"

namespace msrl {
namespace {

constexpr int kMinHorizon = 30;
constexpr int kMaxHorizon = 80;
constexpr int kExtraSize = 4;  // where key and door are from here
constexpr int kRight = 1;
constexpr std::array<int, 4> kDx = {0, 1, 0, -1};
constexpr std::array<int, 4> kDy = {1, 0, -1, 0};
constexpr auto kKinds = EnumValues<GridKind>();

EnvSpec MakeSpec() {
  EnvSpec spec;
  spec.id = MicroGrid::kId;
  spec.family = "micro-grid";
  spec.description = "small mazes: bottlenecks, blocked and one-way passages, keys and doors";
  spec.observation_size = TabularEnv::ObservationSize(MicroGrid::kActions, kExtraSize);
  spec.action = {ActionKind::kDiscrete, MicroGrid::kActions};
  spec.step_limit = MicroGridConfig::kStepLimit;
  spec.reward_low = -3.0;
  spec.reward_high = 1.5;
  spec.geometry_bound = 6.5;  // twice the largest scale
  spec.observation_bound = 6.5;
  spec.has_success = true;
  return spec;
}

int Neighbour(const GridLayout& grid, int cell, int move) {
  const int x = cell % grid.width + kDx[static_cast<std::size_t>(move)];
  const int y = cell / grid.width + kDy[static_cast<std::size_t>(move)];
  if (x < 0 || y < 0 || x >= grid.width || y >= grid.height) return -1;
  return y * grid.width + x;
}

bool IsOpen(const GridLayout& grid, int cell, int move) {
  return (grid.passable[static_cast<std::size_t>(cell)] >> move & 1) != 0;
}

void SetOneWay(GridLayout& grid, int cell, int move, bool open) {
  auto& bits = grid.passable[static_cast<std::size_t>(cell)];
  bits = static_cast<std::uint8_t>(open ? bits | 1 << move : bits & ~(1 << move));
}

void SetBothWays(GridLayout& grid, int cell, int move, bool open) {
  const int other = Neighbour(grid, cell, move);
  if (other < 0) return;
  SetOneWay(grid, cell, move, open);
  SetOneWay(grid, other, (move + 2) % 4, open);
}

void OpenAll(GridLayout& grid) {
  for (int cell = 0; cell < grid.cells(); ++cell) {
    for (int move = 0; move < 4; ++move) SetBothWays(grid, cell, move, true);
  }
}

// Depth-first tree of corridors, then a few shortcuts.
void BuildMaze(GridLayout& grid, Rng& rng) {
  std::vector<char> seen(static_cast<std::size_t>(grid.cells()), 0);
  std::vector<int> stack = {RandomInt(0, grid.cells() - 1, rng)};
  seen[static_cast<std::size_t>(stack[0])] = 1;
  while (!stack.empty()) {
    const int cell = stack.back();
    std::array<int, 4> moves{};
    int count = 0;
    for (int move = 0; move < 4; ++move) {
      const int other = Neighbour(grid, cell, move);
      if (other >= 0 && seen[static_cast<std::size_t>(other)] == 0) {
        moves[static_cast<std::size_t>(count++)] = move;
      }
    }
    if (count == 0) {
      stack.pop_back();
      continue;
    }
    const int move = moves[static_cast<std::size_t>(rng.Index(count))];
    SetBothWays(grid, cell, move, true);
    stack.push_back(Neighbour(grid, cell, move));
    seen[static_cast<std::size_t>(stack.back())] = 1;
  }
  const int shortcuts = RandomInt(0, 3, rng);
  for (int i = 0; i < shortcuts; ++i) {
    SetBothWays(grid, RandomInt(0, grid.cells() - 1, rng), RandomInt(0, 3, rng), true);
  }
}

// A wall right of column `column`; returns two different rows for its gaps.
std::pair<int, int> BuildWall(GridLayout& grid, int column, Rng& rng) {
  OpenAll(grid);
  for (int y = 0; y < grid.height; ++y) {
    SetBothWays(grid, y * grid.width + column, kRight, false);
  }
  const int first = RandomInt(0, grid.height - 1, rng);
  const int other = (first + RandomInt(1, grid.height - 1, rng)) % grid.height;
  return {first, other};
}

void BuildLoop(GridLayout& grid) {
  OpenAll(grid);
  for (int cell = 0; cell < grid.cells(); ++cell) {
    const int x = cell % grid.width;
    const int y = cell / grid.width;
    if (x == 0 || y == 0 || x == grid.width - 1 || y == grid.height - 1) continue;
    for (int move = 0; move < 4; ++move) SetBothWays(grid, cell, move, false);
  }
}

// A layout with the text that the split needs: cheaper to draw again than a whole instance.
struct DrawnLayout {
  GridLayout grid;
  std::string layout;
};

std::string Describe(const GridLayout& grid) {
  LayoutText layout(EnumName(grid.kind));
  layout.Add('w', grid.width);
  layout.Add('h', grid.height);
  for (const std::uint8_t bits : grid.passable) layout.Add('p', bits);
  layout.Add('g', grid.goal);
  layout.Add('k', grid.key);
  layout.Add('d', grid.door_cell);
  return layout.text();
}

DrawnLayout DrawLayout(const MicroGridConfig& config, Rng& rng) {
  DrawnLayout drawn;
  GridLayout& grid = drawn.grid;
  grid.kind = kKinds[static_cast<std::size_t>(rng.Index(std::ssize(kKinds)))];
  if (config.kind) grid.kind = *config.kind;
  grid.width = RandomInt(4, 7, rng);
  grid.height = RandomInt(4, 7, rng);
  if (config.width > 0) grid.width = config.width;
  if (config.height > 0) grid.height = config.height;
  grid.passable.assign(static_cast<std::size_t>(grid.cells()), 0);

  const int column = RandomInt(0, grid.width - 2, rng);
  const auto cell = [&](int x, int y) { return y * grid.width + x; };
  const auto random_cell = [&](int low_x, int high_x) {
    return cell(RandomInt(low_x, high_x, rng), RandomInt(0, grid.height - 1, rng));
  };
  grid.goal = random_cell(0, grid.width - 1);
  switch (grid.kind) {
    case GridKind::kOpen:
      OpenAll(grid);
      break;
    case GridKind::kMaze:
      BuildMaze(grid, rng);
      break;
    case GridKind::kBottleneck: {
      const auto [row, unused] = BuildWall(grid, column, rng);
      SetBothWays(grid, cell(column, row), kRight, true);
      break;
    }
    case GridKind::kBlocked:
      OpenAll(grid);
      for (int c = 0; c < grid.cells(); ++c) {
        for (const int move : {0, 1}) {
          if (rng.Bernoulli(0.3)) SetBothWays(grid, c, move, false);
        }
      }
      break;
    case GridKind::kOneWay: {
      const auto [there, back] = BuildWall(grid, column, rng);
      SetOneWay(grid, cell(column, there), kRight, true);
      SetOneWay(grid, cell(column + 1, back), (kRight + 2) % 4, true);
      break;
    }
    case GridKind::kKeyDoor: {
      const auto [row, unused] = BuildWall(grid, column, rng);
      SetBothWays(grid, cell(column, row), kRight, true);
      grid.door_cell = cell(column, row);
      grid.key = random_cell(0, column);
      grid.goal = random_cell(column + 1, grid.width - 1);
      break;
    }
    case GridKind::kLoop:
      BuildLoop(grid);
      break;
  }
  drawn.layout = Describe(grid);
  return drawn;
}

struct Sample : TabularInstance {
  GridLayout grid;
};

// Transitions over (cell, phase).
FiniteMdp BuildMdp(const GridLayout& grid, int phases) {
  FiniteMdp mdp = FiniteMdp::Idle(grid.cells() * phases, MicroGrid::kActions);
  for (int cell = 0; cell < grid.cells(); ++cell) {
    for (int move = 0; move < 4; ++move) {
      if (!IsOpen(grid, cell, move)) continue;
      const int to = Neighbour(grid, cell, move);
      const bool through_door = (cell == grid.door_cell && move == kRight) ||
                                (to == grid.door_cell && move == (kRight + 2) % 4);
      for (int phase = 0; phase < phases; ++phase) {
        if (grid.door_cell >= 0 && through_door && phase == 0) continue;
        int next_phase = phase;
        if (phases > 1 && phase == 0 && to == grid.key) next_phase = 1;
        if (phases > 1 && through_door) next_phase = 2;
        mdp.next[mdp.At(cell * phases + phase, move)] = to * phases + next_phase;
      }
    }
  }
  return mdp;
}

// The start is -1 if the goal cannot be reached.
Sample BuildInstance(DrawnLayout drawn, Rng& rng) {
  Sample sample;
  sample.layout = std::move(drawn.layout);
  sample.grid = std::move(drawn.grid);
  const GridLayout& grid = sample.grid;
  const int phases = grid.key < 0 ? 1 : 3;
  sample.mdp = BuildMdp(grid, phases);

  // a step length of few binary digits makes all displacements exact, hence equal
  const double exact = 2.0 / (std::max(grid.width, grid.height) - 1);
  sample.step_length = std::round(exact * 0x1p20) * 0x1p-20;
  const auto position = [&](int cell) -> Eigen::Vector2d {
    const int column = cell % grid.width;
    const int row = cell / grid.width;
    return sample.step_length *
           Eigen::Vector2d(column - 0.5 * (grid.width - 1), row - 0.5 * (grid.height - 1));
  };
  const auto states = static_cast<std::size_t>(sample.mdp.states);
  sample.goal = position(grid.goal);
  sample.extra_size = kExtraSize;
  sample.extra.assign(states * kExtraSize, 0.0);
  for (std::size_t s = 0; s < states; ++s) {
    const int cell = static_cast<int>(s) / phases;
    const int phase = static_cast<int>(s) % phases;
    const Eigen::Vector2d here = position(cell);
    sample.position.push_back(here);
    sample.at_goal.push_back(cell == grid.goal ? 1 : 0);
    sample.contact.push_back(phases > 1 ? 0.5 * phase : cell == grid.goal ? 1.0 : 0.0);
    if (phases > 1) {
      Eigen::Map<Eigen::Vector2d>(&sample.extra[s * kExtraSize]) = position(grid.key) - here;
      Eigen::Map<Eigen::Vector2d>(&sample.extra[s * kExtraSize + 2]) =
          position(grid.door_cell) - here;
    }
  }
  sample.stay_action = MicroGrid::kStay;

  const std::vector<int> steps = StepsToGoal(sample.mdp, sample.at_goal);
  std::vector<int> starts;
  for (int cell = 0; cell < grid.cells(); ++cell) {
    const int state = cell * phases;
    // the task begins on the key's side of the door; the key is taken on entering its cell
    if (phases > 1 && (cell == grid.key || cell % grid.width > grid.door_cell % grid.width)) {
      continue;
    }
    if (steps[static_cast<std::size_t>(state)] > 0) starts.push_back(state);
  }
  sample.start = -1;
  if (!starts.empty()) {
    sample.start = starts[static_cast<std::size_t>(rng.Index(std::ssize(starts)))];
    sample.steps_to_goal = steps[static_cast<std::size_t>(sample.start)];
  }

  return sample;
}

}  // namespace

MicroGrid::MicroGrid(MicroGridConfig config)
    : TabularEnv(MakeSpec(), IdentityText(ListFields(RequireInRange(config)))),
      config_(std::move(config)) {}

TabularInstance MicroGrid::Draw(std::uint64_t seed) {
  Rng rng(seed, "micro-grid");
  const auto draw = [&] { return DrawLayout(config_, rng); };
  Sample sample = BuildInstance(DrawInSplit(config_.common, draw), rng);
  while (sample.start < 0) sample = BuildInstance(DrawInSplit(config_.common, draw), rng);
  FinishInstance(config_.common, kMinHorizon, kMaxHorizon, rng, sample);
  drawn_layout_ = sample.grid;
  return sample;
}

}  // namespace msrl
