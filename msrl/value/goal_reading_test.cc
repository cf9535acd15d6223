#include "msrl/value/goal_reading.h"

#include <gtest/gtest.h>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::Tol;
using testing::UserErrorText;

Segment Path(Index steps, std::uint64_t seed) {
  Rng rng(seed, "path");
  Segment segment;
  segment.x.resize(8, steps + 1);
  segment.a.resize(10, steps);
  segment.r.resize(steps);
  for (double& v : segment.x.reshaped()) v = rng.Uniform(-1.0, 1.0);
  for (double& v : segment.a.reshaped()) v = rng.Uniform(-1.0, 1.0);
  for (double& v : segment.r) v = rng.Uniform(-1.0, 1.0);
  return segment;
}

// The matrix of the path that shows the goal, made from the path that does not.
TEST(ShownGoal, IsTheMatrixOfAPathThatShowsIt) {
  for (const LiftKind kind : kCompactLifts) {
    const auto lift = Lift::Make({kind, 8, 10, {}});
    for (const int origin : {0, 4}) {
      const ShownGoal shown{Eigen::Vector2d(0.7, -1.2), origin};
      Segment hidden = Path(12, 1);
      hidden.x.middleRows(2, 2).setZero();
      Segment told = hidden;
      told.x.middleRows(2, 2) = (-hidden.x.middleRows(origin, 2)).colwise() + shown.goal;
      SegmentMatrix z = Describe(lift, hidden);
      const std::int64_t before = testing::AllocationCount();
      shown.Apply(z);
      EXPECT_EQ(testing::AllocationCount(), before);
      const SegmentMatrix expected = Describe(lift, told);
      EXPECT_LE(z.Distance(expected), Tol(1e-12) * expected.Norm());

      Eigen::VectorXd psi(lift->m());
      Eigen::VectorXd wanted(lift->m());
      lift->Apply(hidden.x.col(3), hidden.a.col(3), hidden.r[3], hidden.x.col(4), psi);
      lift->Apply(told.x.col(3), told.a.col(3), told.r[3], told.x.col(4), wanted);
      shown.Apply(*lift, psi);
      EXPECT_LE((psi - wanted).norm(), Tol(1e-12));
    }
  }
}

TEST(GoalReading, FileKeepsEverything) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 8, 10, {}});
  const MatrixFeatures features(lift, MatrixFeatureOptions::Of(FeatureSet::kSelectedRegressions));
  const BranchInfo info{.lift = lift->id(),
                        .lift_kind = "compact-effort",
                        .features = features.options(),
                        .made = {}};
  GoalReading reading(features.size(), {.width = 6, .layers = 2}, info);
  Rng rng(3, "init");
  reading.Init(rng);
  const Artefact artefact = Artefact::Parse(reading.Encode(), "reading");
  const GoalReading read = GoalReading::From(artefact, lift->id());
  MlpTape tape(reading.spec(), 1);
  Eigen::MatrixXf column(features.size(), 1);
  features.Compute(Describe(lift, Path(20, 2)),
                   std::span(column.data(), static_cast<std::size_t>(column.size())));
  const Eigen::Vector2d offset = reading.Offset(column, tape);
  EXPECT_EQ(read.Offset(column, tape), offset);
  EXPECT_LE(reading.Offset(1e6F * column, tape).cwiseAbs().maxCoeff(), GoalReading::kReach);

  const auto other = Lift::Make({LiftKind::kCompact, 8, 10, {}});
  EXPECT_THROW(GoalReading::From(artefact, other->id()), UserError);
  // a branch is no reading
  EXPECT_THROW(
      [&] {
        std::string contents = reading.Encode();
        const auto at = contents.find("goal-reading");
        contents.replace(at, 12, "value-branch");
        GoalReading::From(Artefact::Parse(contents, "branch"), lift->id());
      }(),
      UserError);
}

}  // namespace
}  // namespace msrl
