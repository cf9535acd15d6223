// MicroGrid: small mazes on a grid.
#ifndef MSRL_ENV_MICRO_GRID_H_
#define MSRL_ENV_MICRO_GRID_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/env/tabular_env.h"

namespace msrl {

enum class GridKind {
  kOpen,        // no inner walls
  kMaze,        // a random tree of corridors with a few shortcuts
  kBottleneck,  // two rooms, one gap
  kBlocked,     // no rooms, but many blocked passages
  kOneWay,      // two rooms, one gap for each direction
  kKeyDoor,     // two rooms, a locked door between them, the key in the first
  kLoop,        // a ring corridor: both ways round visit the same cells
};

constexpr auto EnumNames(GridKind) {
  return Names("open", "maze", "bottleneck", "blocked", "one-way", "key-door", "loop");
}

struct MicroGridConfig {
  static constexpr int kStepLimit = 300;
  InstanceOptions common;
  std::optional<GridKind> kind;
  int width = 0;
  int height = 0;

  template <typename V>
  void Fields(V&& visit) {
    common.Fields(visit, kTabularRewards, kStepLimit);
    visit("kind", kind, "kind of maze");
    visit("width", width, "cells from left to right, 3 to 12; 0: sampled", Between(3, 12).Or(0));
    visit("height", height, "cells from bottom to top, 3 to 12; 0: sampled", Between(3, 12).Or(0));
  }
};

// Which moves are possible: directed, so that passages may be one-way.
struct GridLayout {
  GridKind kind = GridKind::kOpen;
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> passable;  // per cell, bit i: move i is possible
  int goal = 0;
  int key = -1;        // cell of the key, -1: none
  int door_cell = -1;  // the door is the passage from this cell to the right
  int cells() const { return width * height; }
};

// Moves: 0 up, 1 right, 2 down, 3 left, 4 stay; a move against a wall stays.
class MicroGrid : public TabularEnv {
 public:
  static constexpr const char* kId = "micro-grid";
  static constexpr int kActions = 5;
  static constexpr int kStay = 4;

  // UserError on impossible options.
  explicit MicroGrid(MicroGridConfig config);

  const GridLayout& layout() const { return layout_; }
  // A state is a cell and, where there is a key, the phase of the task: 0 no key, 1 key held, 2
  // door open.
  int CellOf(int state) const { return state / phases(); }
  int PhaseOf(int state) const { return state % phases(); }
  int phases() const { return layout_.key < 0 ? 1 : 3; }

 private:
  TabularInstance Draw(std::uint64_t seed) override;
  void Adopt() override { layout_ = drawn_layout_; }

  MicroGridConfig config_;
  GridLayout layout_;
  GridLayout drawn_layout_;
};

}  // namespace msrl

#endif  // MSRL_ENV_MICRO_GRID_H_
