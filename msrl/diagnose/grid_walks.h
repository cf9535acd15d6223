// Small mazes with walks through them: real ones, and compositions that break a rule of the maze.
#ifndef MSRL_DIAGNOSE_GRID_WALKS_H_
#define MSRL_DIAGNOSE_GRID_WALKS_H_

#include <Eigen/Core>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "msrl/core/graph.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/env/micro_grid.h"

namespace msrl::internal {

// One transition of a walk over the states of an instance.
struct Move {
  int from = 0;
  int action = 0;
  int to = 0;
};
using Walk = std::vector<Move>;

// A piece appended to a prefix, whether or not the instance allows that.
struct Composition {
  Walk prefix;
  Walk piece;
};

// What the descriptors see of an instance: states embedded with a cell as the unit of length.
struct World {
  FiniteMdp mdp;
  Eigen::MatrixXd nodes;    // d x states
  std::vector<int> starts;  // all states that the task can be in
  int phases = 1;

  int Next(int state, int action) const { return mdp.next[mdp.At(state, action)]; }
  int PhaseOf(int state) const { return state % phases; }
  int InPhase(int state, int phase) const { return state - PhaseOf(state) + phase; }
};

// Of `dimensions` two are the place; the third, if any, is the phase.
World MakeWorld(const TabularInstance& instance, int phases, Index dimensions);

// A maze of 3 x 3, 3 x 4 or 4 x 3 cells.
MicroGrid MakeGrid(Split split, GridKind kind, Rng& rng);

// One-hot.
Eigen::VectorXd ActionCode(int action, int actions);

// All transitions between states that the task can be in.
Multigraph GraphOf(const World& world);

// Without rewards.
Segment SegmentOf(const World& world, const Walk& walk);

template <typename T>
const T& AnyOf(const std::vector<T>& values, Rng& rng) {
  return values[static_cast<std::size_t>(rng.Index(std::ssize(values)))];
}

// Uniformly random actions.
Walk RandomWalk(const World& world, int state, int length, Rng& rng);

// A random walk, cut in two.
Composition DrawReal(const World& world, int prefix_length, int piece_length, Rng& rng);

enum class Blocked {
  kOneWay,      // crosses a one-way passage against its direction, as a sibling layout allows
  kPhase,       // goes on with the key, which the prefix does not have
  kWalkedBack,  // the states of a real piece in reverse order under the actions of the real one
};
constexpr int kBlockedKinds = 3;

// Nothing if many attempts find none.
std::optional<Composition> DrawBlocked(const World& world, Blocked kind, int prefix_length,
                                       int piece_length, Rng& rng);

// A composition of real pieces that meet in the same place, but in different phases of the task;
// with `same_transitions` they are the parts of a real walk in the wrong order. Nothing if many
// attempts find none.
std::optional<Composition> DrawPhaseJump(const World& world, int prefix_length, int piece_length,
                                         bool same_transitions, Rng& rng);

}  // namespace msrl::internal

#endif  // MSRL_DIAGNOSE_GRID_WALKS_H_
