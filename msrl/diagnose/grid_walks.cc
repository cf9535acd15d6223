#include "msrl/diagnose/grid_walks.h"

#include <algorithm>
#include <set>
#include <utility>

namespace msrl::internal {

World MakeWorld(const TabularInstance& instance, int phases, Index dimensions) {
  World world{.mdp = instance.mdp,
              .nodes = Eigen::MatrixXd::Zero(dimensions, instance.mdp.states),
              .starts = {},
              .phases = phases};
  for (int s = 0; s < world.mdp.states; ++s) {
    world.nodes.col(s).head<2>() =
        instance.position[static_cast<std::size_t>(s)] / instance.step_length;
    if (dimensions > 2) world.nodes(2, s) = world.PhaseOf(s);
  }
  std::set<int> seen = {instance.start};
  std::vector<int> open = {instance.start};
  while (!open.empty()) {
    const int state = open.back();
    open.pop_back();
    for (int a = 0; a < world.mdp.actions; ++a) {
      const int next = world.Next(state, a);
      if (seen.insert(next).second) open.push_back(next);
    }
  }
  world.starts.assign(seen.begin(), seen.end());
  return world;
}

MicroGrid MakeGrid(Split split, GridKind kind, Rng& rng) {
  MicroGridConfig config;
  config.common.split = split;
  config.kind = kind;
  config.width = RandomInt(3, 4, rng);
  config.height = config.width == 3 ? RandomInt(3, 4, rng) : 3;
  MicroGrid grid(config);
  grid.Reset(rng.NextU64());
  return grid;
}

Eigen::VectorXd ActionCode(int action, int actions) {
  return Eigen::VectorXd::Unit(actions, action);
}

Multigraph GraphOf(const World& world) {
  Multigraph graph{.nodes = world.nodes, .edges = {}};
  for (const int state : world.starts) {
    for (int a = 0; a < world.mdp.actions; ++a) {
      graph.edges.push_back({state, world.Next(state, a), ActionCode(a, world.mdp.actions), 0.0});
    }
  }
  return graph;
}

Segment SegmentOf(const World& world, const Walk& walk) {
  const auto length = static_cast<Index>(walk.size());
  Segment segment{Eigen::MatrixXd(world.nodes.rows(), length + 1),
                  Eigen::MatrixXd(world.mdp.actions, length), Eigen::VectorXd::Zero(length)};
  for (Index t = 0; t < length; ++t) {
    const Move& move = walk[static_cast<std::size_t>(t)];
    segment.x.col(t) = world.nodes.col(move.from);
    segment.x.col(t + 1) = world.nodes.col(move.to);
    segment.a.col(t) = ActionCode(move.action, world.mdp.actions);
  }
  return segment;
}

Walk RandomWalk(const World& world, int state, int length, Rng& rng) {
  Walk walk;
  for (int t = 0; t < length; ++t) {
    const int action = static_cast<int>(rng.Index(world.mdp.actions));
    walk.push_back({state, action, world.Next(state, action)});
    state = walk.back().to;
  }
  return walk;
}

Composition DrawReal(const World& world, int prefix_length, int piece_length, Rng& rng) {
  Walk walk = RandomWalk(world, AnyOf(world.starts, rng), prefix_length + piece_length, rng);
  const auto cut = walk.begin() + prefix_length;
  return {Walk(walk.begin(), cut), Walk(cut, walk.end())};
}

namespace {

bool IsLegal(const World& world, const Move& move) {
  return world.Next(move.from, move.action) == move.to;
}

// Whether the same places can be visited by walking in the other direction, so that occupancy
// cannot tell the walk from a legal one.
bool HasLegalTwin(const World& world, const Walk& walk) {
  return std::all_of(walk.begin(), walk.end(), [&](const Move& move) {
    for (int a = 0; a < world.mdp.actions; ++a) {
      if (world.Next(move.to, a) == move.from) return true;
    }
    return false;
  });
}

// The instance with every one-way passage open in both directions.
World OpenedBothWays(const World& world) {
  World sibling = world;
  for (const int state : world.starts) {
    for (int a = 0; a < MicroGrid::kStay; ++a) {
      const int next = world.Next(state, a);
      if (next == state) continue;
      int& back = sibling.mdp.next[sibling.mdp.At(next, (a + 2) % 4)];
      if (back == next) back = state;
    }
  }
  return sibling;
}

}  // namespace

std::optional<Composition> DrawBlocked(const World& world, Blocked kind, int prefix_length,
                                       int piece_length, Rng& rng) {
  const World sibling = kind == Blocked::kOneWay ? OpenedBothWays(world) : World{};
  constexpr int kAttempts = 5000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Composition drawn;
    drawn.prefix = RandomWalk(world, AnyOf(world.starts, rng), prefix_length, rng);
    const int exit = drawn.prefix.back().to;
    switch (kind) {
      case Blocked::kOneWay: {
        drawn.piece = RandomWalk(sibling, exit, piece_length, rng);
        const bool legal = std::all_of(drawn.piece.begin(), drawn.piece.end(),
                                       [&](const Move& move) { return IsLegal(world, move); });
        if (legal || !HasLegalTwin(world, drawn.prefix) || !HasLegalTwin(world, drawn.piece)) {
          continue;
        }
        return drawn;
      }
      case Blocked::kPhase: {
        if (world.PhaseOf(exit) != 0) continue;
        const int phase = RandomInt(1, world.phases - 1, rng);
        drawn.piece = RandomWalk(world, world.InPhase(exit, phase), piece_length, rng);
        return drawn;
      }
      case Blocked::kWalkedBack: {
        Walk piece = RandomWalk(world, AnyOf(world.starts, rng), piece_length, rng);
        // prefix or piece is a loop: then they also make a legal walk with the piece not reversed,
        // which has the same places under the same actions
        const int entry = piece.front().from;
        if (piece.back().to != exit || (entry != exit && drawn.prefix.front().from != exit) ||
            std::all_of(piece.begin(), piece.end(),
                        [](const Move& move) { return move.from == move.to; })) {
          continue;
        }
        for (Move& move : piece) std::swap(move.from, move.to);
        std::reverse(piece.begin(), piece.end());
        drawn.piece = std::move(piece);
        return drawn;
      }
    }
  }
  return std::nullopt;
}

std::optional<Composition> DrawPhaseJump(const World& world, int prefix_length, int piece_length,
                                         bool same_transitions, Rng& rng) {
  constexpr int kAttempts = 2000;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Composition drawn = DrawReal(world, prefix_length, piece_length, rng);
    if (same_transitions) {
      std::swap(drawn.prefix, drawn.piece);
      const int exit = drawn.prefix.back().to;
      const int entry = drawn.piece.front().from;
      if (exit != entry && world.InPhase(exit, 0) == world.InPhase(entry, 0)) return drawn;
      continue;
    }
    const int exit = drawn.prefix.back().to;
    const int entry = AnyOf(world.starts, rng);
    if (exit == entry || world.InPhase(exit, 0) != world.InPhase(entry, 0)) continue;
    drawn.piece = RandomWalk(world, entry, piece_length, rng);
    return drawn;
  }
  return std::nullopt;
}

}  // namespace msrl::internal
