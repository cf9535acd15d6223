#include "msrl/inspect/climb.h"

#include <gtest/gtest.h>

#include "msrl/env_list/env_list.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

std::unique_ptr<Env> Maze() { return MakeEnv("four-rooms-sparse"); }
std::unique_ptr<Env> Graph() { return MakeEnv("graph-motif"); }

// F = sign * (-|x_T - goal|_1 where the goal is seen from), by hand: two hidden units per goal
// slot.
ValueBranch Nearness(float sign) {
  const Lift::Ptr lift = CompactLift();
  const MatrixFeatures features(lift);
  BranchInfo info;
  info.lift = lift->id();
  ValueBranch branch(features.size(), {.width = 4, .layers = 1, .layer_norm = false}, info);
  const auto w = branch.network().parameters();
  const auto goal = static_cast<std::size_t>(features.last_state_begin() + 2);
  for (std::size_t i = 0; i < 2; ++i) {
    // weights are stored column by column: 4 rows per feature
    w[(goal + i) * 4 + 2 * i] = 1.0F;
    w[(goal + i) * 4 + 2 * i + 1] = -1.0F;
  }
  const std::size_t output = static_cast<std::size_t>(features.size()) * 4 + 4;
  for (std::size_t i = 0; i < 4; ++i) w[output + i] = -sign;
  return branch;
}

TEST(Climb, AGoodBranchClimbsAndItsOppositeDoesNot) {
  const ClimbOptions options{.episodes = 6, .candidates = 12, .horizon = 3, .seed = 5};
  const auto by = [&](float sign, ClimbBy way) {
    return Climb(Maze, Nearness(sign), way, options).mean;
  };
  const double random = by(1.0F, ClimbBy::kRandom);
  EXPECT_GT(by(1.0F, ClimbBy::kBranch), random + 10.0);
  EXPECT_LT(by(-1.0F, ClimbBy::kBranch), random + 5.0);
  EXPECT_GT(by(1.0F, ClimbBy::kDistance), random + 10.0);
  EXPECT_GT(by(1.0F, ClimbBy::kBranchAndRewards), random + 10.0);
  // neither asks the branch
  EXPECT_EQ(by(1.0F, ClimbBy::kRewards), by(-1.0F, ClimbBy::kRewards));
  EXPECT_EQ(by(1.0F, ClimbBy::kDistance), by(-1.0F, ClimbBy::kDistance));
}

TEST(Climb, EqualOptionsEqualResults) {
  const ClimbOptions options{.episodes = 2, .horizon = 2, .seed = 3};
  const ClimbResult a = Climb(Graph, Nearness(1.0F), ClimbBy::kBranch, options);
  const ClimbResult b = Climb(Graph, Nearness(1.0F), ClimbBy::kBranch, options);
  EXPECT_EQ(a.mean, b.mean);
  EXPECT_EQ(a.standard_error, b.standard_error);
  ClimbOptions other = options;
  other.seed = 4;
  EXPECT_NE(Climb(Graph, Nearness(1.0F), ClimbBy::kBranch, other).mean, a.mean);
}

TEST(Climb, RefusesNonsense) {
  const std::string text =
      UserErrorText([] { Climb(Maze, Nearness(1.0F), ClimbBy::kBranch, {.horizon = 0}); });
  EXPECT_NE(text.find("horizon"), std::string::npos) << text;
}

}  // namespace
}  // namespace msrl
