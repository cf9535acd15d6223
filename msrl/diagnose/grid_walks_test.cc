#include "msrl/diagnose/grid_walks.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace msrl::internal {
namespace {

World WorldOf(GridKind kind, Rng& rng) {
  MicroGrid grid = MakeGrid(Split::kTrain, kind, rng);
  return MakeWorld(grid.instance(), grid.phases(), 3);
}

bool IsLegal(const World& world, const Walk& walk) {
  for (std::size_t t = 0; t < walk.size(); ++t) {
    if (world.Next(walk[t].from, walk[t].action) != walk[t].to) return false;
    if (t > 0 && walk[t - 1].to != walk[t].from) return false;
  }
  return true;
}

Walk Joined(const Composition& composition) {
  Walk walk = composition.prefix;
  walk.insert(walk.end(), composition.piece.begin(), composition.piece.end());
  return walk;
}

TEST(GridWalks, RealCompositionsAreLegalWalks) {
  Rng rng(1, "walks");
  for (const GridKind kind : {GridKind::kMaze, GridKind::kOneWay, GridKind::kKeyDoor}) {
    const World world = WorldOf(kind, rng);
    for (int n = 0; n < 20; ++n) {
      const Composition real = DrawReal(world, 4, 3, rng);
      EXPECT_EQ(real.prefix.size(), 4U);
      EXPECT_EQ(real.piece.size(), 3U);
      EXPECT_TRUE(IsLegal(world, Joined(real)));
    }
  }
}

TEST(GridWalks, BlockedCompositionsBreakARule) {
  Rng rng(2, "walks");
  int found = 0;
  for (int n = 0; n < 10; ++n) {
    const World one_way = WorldOf(GridKind::kOneWay, rng);
    const World key_door = WorldOf(GridKind::kKeyDoor, rng);
    const auto check = [&](const World& world, Blocked kind) {
      const auto blocked = DrawBlocked(world, kind, 4, 3, rng);
      if (!blocked) return;
      ++found;
      EXPECT_TRUE(IsLegal(world, blocked->prefix));
      EXPECT_FALSE(IsLegal(world, Joined(*blocked))) << static_cast<int>(kind);
    };
    check(one_way, Blocked::kOneWay);
    check(one_way, Blocked::kWalkedBack);
    check(key_door, Blocked::kPhase);
    check(key_door, Blocked::kWalkedBack);
  }
  EXPECT_GT(found, 30);
}

TEST(GridWalks, PhaseJumpsMeetInOnePlaceInAnotherPhase) {
  Rng rng(3, "walks");
  int found = 0;
  for (int n = 0; n < 10; ++n) {
    const World world = WorldOf(GridKind::kKeyDoor, rng);
    for (const bool same_transitions : {false, true}) {
      const auto jump = DrawPhaseJump(world, 4, 3, same_transitions, rng);
      if (!jump) continue;
      ++found;
      const int exit = jump->prefix.back().to;
      const int entry = jump->piece.front().from;
      EXPECT_TRUE(IsLegal(world, jump->prefix));
      EXPECT_TRUE(IsLegal(world, jump->piece));
      EXPECT_EQ(world.InPhase(exit, 0), world.InPhase(entry, 0));
      EXPECT_NE(world.PhaseOf(exit), world.PhaseOf(entry));
      EXPECT_EQ(world.nodes.col(exit).head<2>(), world.nodes.col(entry).head<2>());
      // the parts of one walk in the wrong order
      EXPECT_TRUE(!same_transitions || IsLegal(world, Joined({jump->piece, jump->prefix})));
    }
  }
  EXPECT_GT(found, 10);
}

TEST(GridWalks, SegmentsAndGraphsShowTheWalk) {
  Rng rng(4, "walks");
  const World world = WorldOf(GridKind::kMaze, rng);
  const Walk walk = RandomWalk(world, world.starts.front(), 6, rng);
  const Segment segment = SegmentOf(world, walk);
  const Multigraph graph = GraphOf(world);
  EXPECT_EQ(std::ssize(graph.edges), std::ssize(world.starts) * world.mdp.actions);
  for (Index t = 0; t < 6; ++t) {
    const Move& move = walk[static_cast<std::size_t>(t)];
    EXPECT_EQ(segment.x.col(t), world.nodes.col(move.from));
    EXPECT_EQ(segment.x.col(t + 1), world.nodes.col(move.to));
    EXPECT_EQ(segment.a.col(t).sum(), 1.0);
    EXPECT_EQ(segment.a(move.action, t), 1.0);
    EXPECT_TRUE(std::any_of(graph.edges.begin(), graph.edges.end(), [&](const auto& edge) {
      return edge.tail == move.from && edge.head == move.to && edge.action == segment.a.col(t);
    }));
    // a cell is the unit of length
    const double length = (segment.x.col(t + 1) - segment.x.col(t)).head<2>().norm();
    EXPECT_TRUE(length < 1e-12 || std::abs(length - 1.0) < 1e-12) << length;
  }
}

}  // namespace
}  // namespace msrl::internal
