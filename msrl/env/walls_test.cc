#include "msrl/env/walls.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "msrl/core/rng.h"
#include "msrl/env/four_rooms.h"
#include "msrl/env/point_rooms.h"

namespace msrl {
namespace {

Walls OneWall() {
  Walls walls(1.0);
  walls.Add({.axis = 0, .position = 0.0, .gap_half_width = 0.25, .gaps = 1, .gap = {0.5, 0.0}});
  return walls;
}

TEST(Walls, LetThroughOnlyAtGaps) {
  const Walls walls = OneWall();
  EXPECT_TRUE(walls.Blocks({-0.1, 0.0}, {0.1, 0.0}));
  EXPECT_FALSE(walls.Blocks({-0.1, 0.5}, {0.1, 0.5}));
  EXPECT_FALSE(walls.Blocks({-0.2, 0.0}, {-0.1, 0.0}));
  EXPECT_TRUE(walls.Blocks({0.9, 0.0}, {1.1, 0.0}));
}

TEST(Walls, SeeThroughGaps) {
  const Walls walls = OneWall();
  EXPECT_TRUE(walls.IsClear({-0.5, 0.5}, {0.5, 0.5}, 0.1));
  EXPECT_FALSE(walls.IsClear({-0.5, 0.0}, {0.5, 0.0}, 0.1));
  EXPECT_FALSE(walls.IsClear({-0.5, 0.3}, {0.5, 0.3}, 0.1));
}

TEST(Route, GoesRoundTheWall) {
  const Walls walls = OneWall();
  const Route route(walls, {0.5, -0.5}, 0.05);
  const Route::Heading direct = route.From(walls, {0.5, 0.0});
  EXPECT_TRUE(direct.is_goal);
  EXPECT_DOUBLE_EQ(direct.distance, 0.5);
  const Route::Heading round = route.From(walls, {-0.5, -0.5});
  EXPECT_FALSE(round.is_goal);
  EXPECT_GT(round.distance, 2.0);
  EXPECT_LT(round.distance, 2.6);
}

// Any two points of four rooms are joined, on a way that is not shorter than a straight line.
TEST(Route, ReachesEverywhereInFourRooms) {
  const FourRoomsModel model;
  Rng rng(1, "points");
  for (int i = 0; i < 1000; ++i) {
    const Vec2 from(rng.Uniform(-1.9, 1.9), rng.Uniform(-1.9, 1.9));
    const Vec2 goal(rng.Uniform(-1.9, 1.9), rng.Uniform(-1.9, 1.9));
    const Route::Heading heading = Route(model.walls, goal, 0.1).From(model.walls, from);
    ASSERT_TRUE(std::isfinite(heading.distance));
    ASSERT_GE(heading.distance, (goal - from).norm() - 1e-12);
    ASSERT_LE(heading.distance, 12.0);
  }
}

TEST(FourRooms, ExpertReachesTheGoal) {
  FourRooms env({.reward = GoalReward::kSparse});
  ActionBuffer action(env.spec().action);
  int reached = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    env.Reset(seed);
    for (int t = 0; t < 100; ++t) {
      env.expert()->Best(action);
      env.Step(action.view());
    }
    reached += *env.Success() ? 1 : 0;
  }
  EXPECT_GE(reached, 198);
}

TEST(PointRooms, TransformsChangeOnlyWhatIsShown) {
  for (const PlaneMap kind :
       {PlaneMap::kRotation, PlaneMap::kReflection, PlaneMap::kScaling, PlaneMap::kShear}) {
    PointRooms plain({});
    PointRoomsConfig config;
    config.transform = kind;
    PointRooms mapped(config);
    Rng rng(1, "actions");
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      plain.Reset(seed);
      mapped.Reset(seed);
      const Eigen::Matrix2d map = mapped.model().transform;
      EXPECT_FALSE(map.isIdentity());
      EXPECT_GT(std::abs(map.determinant()), 0.1);
      for (int t = 0; t < 30; ++t) {
        const double values[] = {rng.Uniform(-1, 1), rng.Uniform(-1, 1)};
        EXPECT_EQ(plain.Step(Action::Continuous(values)).reward,
                  mapped.Step(Action::Continuous(values)).reward);
        EXPECT_EQ(plain.observation(), mapped.observation());
        for (int pair = 0; pair < 6; pair += 2) {
          const Vec2 expected = map * plain.geometry().segment<2>(pair);
          EXPECT_EQ(Vec2(mapped.geometry().segment<2>(pair)), expected);
        }
      }
    }
  }
}

// Who goes straight ahead fails, who knows the way does not.
TEST(PointRooms, ADetourLeadsAroundAWall) {
  PointRoomsConfig config;
  config.detour = true;
  config.common.reward = RewardStyle::kSparse;
  config.common.horizon = 150;
  PointRooms env(config);
  ActionBuffer action(env.spec().action);
  int straight = 0;
  int around = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    for (const bool knows : {false, true}) {
      env.Reset(seed);
      const PointRoomsModel& model = env.model();
      EXPECT_FALSE(model.walls.IsClear(model.start.position, model.goal, 0.0)) << seed;
      bool arrived = false;
      for (int t = 0; t < 150 && !arrived; ++t) {
        env.expert()->Best(action);
        if (!knows) {
          const Vec2 way = model.goal - env.state().position;
          for (int i = 0; i < 2; ++i) action.values()[static_cast<std::size_t>(i)] = way[i];
        }
        env.Step(action.view());
        arrived = *env.Success();
      }
      (knows ? around : straight) += arrived ? 1 : 0;
    }
  }
  EXPECT_GE(around, 190);
  EXPECT_LE(straight, 40);
}

TEST(PointRooms, SnapshotsFromBeforeDetoursStayReadable) {
  std::vector<ConfigField> before = ListFields(PointRoomsConfig{});
  EXPECT_EQ(std::erase_if(before, [](const ConfigField& f) { return f.key == "detour"; }), 1U);
  EXPECT_EQ(IdentityOf(PointRoomsConfig{}), IdentityText(before));
  PointRoomsConfig config;
  config.detour = true;
  EXPECT_EQ(IdentityOf(config), IdentityText(ListFields(config)));
  PointRooms plain({});
  PointRooms detours(config);
  plain.Reset(1);
  detours.Reset(1);
  EXPECT_THROW(detours.Restore(plain.Snapshot()), UserError);
  EXPECT_THROW(plain.Restore(detours.Snapshot()), UserError);
}

TEST(PointRooms, ADetourNeedsAWallAndAGoal) {
  PointRoomsConfig config;
  config.detour = true;
  config.layout = RoomLayout::kOpen;
  EXPECT_THROW(PointRooms{config}, UserError);
  config.layout.reset();
  config.common.reward = RewardStyle::kVelocity;
  EXPECT_THROW(PointRooms{config}, UserError);
}

}  // namespace
}  // namespace msrl
