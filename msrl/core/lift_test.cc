#include "msrl/core/lift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "msrl/core/check.h"
#include "msrl/core/segment_matrix.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::UserErrorText;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Lift, HasThePapersDimensions) {
  EXPECT_EQ(Lift::Make({LiftKind::kCompact, 8, 10, {}})->m(), 28);
  EXPECT_EQ(Lift::Make({LiftKind::kCompactNoAction, 8, 10, {}})->m(), 18);
  EXPECT_EQ(Lift::Make({LiftKind::kCompactNoReward, 8, 10, {}})->m(), 27);
  EXPECT_EQ(Lift::Make({LiftKind::kCompactEffort, 8, 10, {}})->m(), 29);
  EXPECT_EQ(Lift::Make({LiftKind::kCompactSquares, 8, 10, {}})->m(), 33);
  EXPECT_EQ(Lift::Make({LiftKind::kFull, 8, 10, {}})->m(), 2 * 8 + 2 * 10 * 8 + 2);
}

TEST(Lift, FullLiftOfOneStepByHand) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 2, {}});
  Eigen::VectorXd psi(lift->m());
  lift->Apply(Eigen::Vector2d(1, 2), Eigen::Vector2d(10, -1), 0.5, Eigen::Vector2d(3, 8), psi);
  Eigen::VectorXd expected(14);
  // c, delta, 10*c, -1*c, 10*delta, -1*delta, r, 1
  expected << 2, 5, 2, 6, 20, 50, -2, -5, 20, 60, -2, -6, 0.5, 1;
  EXPECT_EQ(psi, expected);
}

TEST(Lift, CompactLiftOfOneStepByHand) {
  const auto lift = Lift::Make({LiftKind::kCompact, 2, 1, {}});
  Eigen::VectorXd psi(lift->m());
  lift->Apply(Eigen::Vector2d(1, 2), Eigen::VectorXd::Constant(1, -4), 0.5, Eigen::Vector2d(3, 8),
              psi);
  Eigen::VectorXd expected(7);
  expected << 1, 2, 2, 6, -4, 0.5, 1;
  EXPECT_EQ(psi, expected);
}

TEST(Lift, EffortIsTheSquareOfTheAction) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 1, 2, {}});
  const auto one = [](double v) { return Eigen::VectorXd::Constant(1, v); };
  Eigen::VectorXd psi(lift->m());
  lift->Apply(one(1), Eigen::Vector2d(3, -4), 0.5, one(3), psi);
  Eigen::VectorXd expected(7);
  expected << 1, 2, 3, -4, 25, 0.5, 1;
  EXPECT_EQ(psi, expected);
  EXPECT_NE(UserErrorText([&] {
              lift->Apply(one(1), Eigen::Vector2d(1e60, 0), 0.5, one(3), psi);
            }).find("effort"),
            std::string::npos);
}

TEST(Lift, SquaresOfEffortRewardAndPosition) {
  const auto lift = Lift::Make({LiftKind::kCompactSquares, 3, 1, {}});
  const auto one = [](double v) { return Eigen::VectorXd::Constant(1, v); };
  const Eigen::Vector3d x(1, 2, 9);
  Eigen::VectorXd psi(lift->m());
  lift->Apply(x, one(-3), 0.5, Eigen::Vector3d(3, 4, 7), psi);
  Eigen::VectorXd expected(14);
  // x, dx, a, e, ee, er, rr, p, r, 1
  expected << 1, 2, 9, 2, 2, -2, -3, 9, 81, 4.5, 0.25, 25, 0.5, 1;
  EXPECT_EQ(psi, expected);
  const auto message = [&](double a, double r, double x_next) {
    return UserErrorText([&] { lift->Apply(x, one(a), r, Eigen::Vector3d(x_next, 0, 0), psi); });
  };
  EXPECT_EQ(message(1e30, 0, 0), "effort squared is 1e+120, too large to be squared");
  EXPECT_EQ(message(1e30, 1e20, 0), "effort squared is 1e+120, too large to be squared");
  EXPECT_EQ(message(1e10, 1e60, 0), "effort times reward is 1e+80, too large to be squared");
  EXPECT_EQ(message(0, 1e40, 0), "reward squared is 1e+80, too large to be squared");
  EXPECT_EQ(message(0, 0, 1e40), "next position squared is 1e+80, too large to be squared");
  EXPECT_THROW(Lift::Make({LiftKind::kCompactSquares, 1, 1, {}}), UserError);
}

TEST(Lift, LabelsNameEveryRow) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 1, {}});
  const std::vector<std::string> expected{
      "c[0]",      "c[1]",          "delta[0]",      "delta[1]", "xi_c[0,0]",
      "xi_c[0,1]", "xi_delta[0,0]", "xi_delta[0,1]", "r",        "1"};
  EXPECT_EQ(lift->Labels(), expected);
}

TEST(Lift, IdChangesWithEverythingThatMatters) {
  const std::vector<GeometrySlot> slots{{"x", 1.0}, {"y", 1.0}};
  const std::vector<GeometrySlot> renamed{{"x", 1.0}, {"z", 1.0}};
  const std::vector<GeometrySlot> rescaled{{"x", 1.0}, {"y", 2.0}};
  std::set<std::uint64_t> ids;
  for (const LiftSpec& spec :
       {LiftSpec{LiftKind::kFull, 2, 3, {}}, LiftSpec{LiftKind::kCompact, 2, 3, {}},
        LiftSpec{LiftKind::kCompactNoAction, 2, 3, {}},
        LiftSpec{LiftKind::kCompactNoReward, 2, 3, {}}, LiftSpec{LiftKind::kCompact, 3, 3, {}},
        LiftSpec{LiftKind::kCompact, 2, 4, {}}, LiftSpec{LiftKind::kCompact, 2, 3, slots},
        LiftSpec{LiftKind::kCompact, 2, 3, renamed},
        LiftSpec{LiftKind::kCompact, 2, 3, rescaled}}) {
    ids.insert(Lift::Make(spec)->id().value);
  }
  EXPECT_EQ(ids.size(), 9u);
  EXPECT_EQ(Lift::Make({LiftKind::kCompact, 2, 3, slots})->id(),
            Lift::Make({LiftKind::kCompact, 2, 3, slots})->id());
}

TEST(Lift, IdIsStableAcrossVersions) {
  // goes into files: changing it makes them unreadable
  EXPECT_EQ(Lift::Make({LiftKind::kCompact, 8, 10, {}})->id().ToString(), "5f84742353ef2cd9");
}

TEST(Lift, RefusesNonFiniteInputAndNamesTheChannel) {
  const auto lift = Lift::Make({LiftKind::kCompact, 2, 1, {{"east", 1.0}, {"north", 1.0}}});
  const Eigen::Vector2d x(1, 2);
  const Eigen::VectorXd a = Eigen::VectorXd::Zero(1);
  Eigen::VectorXd psi(lift->m());
  const auto message = [&](const Eigen::VectorXd& x0, const Eigen::VectorXd& action, double r,
                           const Eigen::VectorXd& x1) {
    return UserErrorText([&] { lift->Apply(x0, action, r, x1, psi); });
  };
  EXPECT_EQ(message(Eigen::Vector2d(1, kNan), a, 0, x), "x[1] 'north' is nan");
  EXPECT_EQ(message(x, a, 0, Eigen::Vector2d(-kInf, 0)), "next x[0] 'east' is -inf");
  EXPECT_EQ(message(x, Eigen::VectorXd::Constant(1, kInf), 0, x), "a[0] is inf");
  EXPECT_EQ(message(x, a, kNan, x), "reward is nan");
  EXPECT_EQ(message(x, a, 1e80, x), "reward is 1e+80, too large to be squared");
  EXPECT_EQ(message(x, Eigen::VectorXd::Zero(3), 0, x), "a has 3 entries, the lift needs 1");
  EXPECT_EQ(message(Eigen::VectorXd::Zero(3), a, 0, x), "x has 3 entries, the lift needs 2");
}

TEST(Lift, RefusesImpossibleSpecs) {
  EXPECT_THROW(Lift::Make({LiftKind::kFull, 0, 1, {}}), UserError);
  EXPECT_THROW(Lift::Make({LiftKind::kFull, 2, -1, {}}), UserError);
  EXPECT_THROW(Lift::Make({LiftKind::kFull, 5000, 1, {}}), UserError);
  EXPECT_THROW(Lift::Make({LiftKind::kFull, 2, 1, {{"only one", 1.0}}}), UserError);
  EXPECT_THROW(Lift::Make({LiftKind::kFull, 1, 1, {{"x", 0.0}}}), UserError);
}

TEST(Lift, NamesKindsBothWays) {
  for (const char* name : {"full", "compact", "compact-no-action", "compact-no-reward",
                           "compact-effort", "compact-squares"}) {
    EXPECT_EQ(LiftKindName(LiftKindFromName(name)), name);
  }
  EXPECT_NE(UserErrorText([] { LiftKindFromName("compct"); }).find("did you mean 'compact'?"),
            std::string::npos);
}

TEST(Lift, UnknownBlockNamesTheNearest) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 1, {}});
  EXPECT_EQ(UserErrorText([&] { lift->FindBlock("dleta"); }),
            "the full lift has no block 'dleta'; did you mean 'delta'?");
}

TEST(Lift, ApplyAndStepUpdateDoNotAllocate) {
  for (const LiftKind kind : {LiftKind::kFull, LiftKind::kCompact, LiftKind::kCompactSquares}) {
    const auto lift = Lift::Make({kind, 8, 10, {}});
    SegmentMatrix matrix(lift);
    const Eigen::VectorXd x = Eigen::VectorXd::Ones(8);
    const Eigen::VectorXd x_next = Eigen::VectorXd::Constant(8, 2.0);
    const Eigen::VectorXd a = Eigen::VectorXd::Ones(10);
    Eigen::VectorXd psi(lift->m());
    const std::int64_t before = testing::AllocationCount();
    for (int t = 0; t < 100; ++t) {
      lift->Apply(x, a, 0.5, x_next, psi);
      matrix.AddStep(psi);
    }
    EXPECT_EQ(testing::AllocationCount() - before, 0);
    EXPECT_EQ(matrix.Horizon(), 100);
  }
}

TEST(AllocationCounter, SeesAllocations) {
  const std::int64_t before = testing::AllocationCount();
  const Eigen::VectorXd vector = Eigen::VectorXd::Zero(1000);
  EXPECT_EQ(vector.size(), 1000);
  EXPECT_GT(testing::AllocationCount(), before);
}

}  // namespace
}  // namespace msrl
