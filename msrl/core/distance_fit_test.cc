#include "msrl/core/distance_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::Tol;

constexpr double kUnit = 0.3;
constexpr double kPrice = 0.4;
const Eigen::Vector2d kGoal(0.7, -1.1);

Lift::Ptr SquaresLift() { return Lift::Make({LiftKind::kCompactSquares, 3, 2, {}}); }

// Small steps to the upper right, bent by `bend`, rewarded for nearness and charged for effort.
Segment Walk(Index steps, double bend) {
  Rng rng(4, "walk");
  Segment segment;
  segment.x = Eigen::MatrixXd::Zero(3, steps + 1);
  segment.a.resize(2, steps);
  segment.r.resize(steps);
  for (Index t = 0; t < steps; ++t) {
    const double along = 0.05 * rng.Uniform();
    const Eigen::Vector3d move(along, along + bend * rng.Normal(), rng.Normal());
    segment.x.col(t + 1) = segment.x.col(t) + move;
    segment.a.col(t) = Eigen::Vector2d(rng.Normal(), rng.Normal());
    segment.r[t] = -kUnit * (segment.x.col(t + 1).head<2>() - kGoal).norm() -
                   kPrice * segment.a.col(t).squaredNorm();
  }
  return segment;
}

TEST(DistanceFit, FindsTheGoalBehindEffortAndFarAway) {
  for (const Index steps : {15, 100}) {
    const DistanceFit fit(Describe(SquaresLift(), Walk(steps, 0.05)));
    EXPECT_LE((fit.Goal() - kGoal).norm(), 2e-2) << steps;
    EXPECT_NEAR(fit.Steepness(), kUnit * kUnit, 1e-3);
    EXPECT_LE(fit.Unexplained(), 1e-5);
    for (const double told : fit.Told()) EXPECT_GE(told, 0.99);
  }
}

TEST(DistanceFit, OfAStraightLineSaysThatItDoesNotKnow) {
  const DistanceFit fit(Describe(SquaresLift(), Walk(50, 0.0)));
  EXPECT_LE(fit.Told().head<2>().maxCoeff(), 0.6);
  // along the line it does
  EXPECT_NEAR(fit.Goal().sum(), kGoal.sum(), 1e-2);
}

TEST(DistanceFit, OfAnotherRewardExplainsLittle) {
  Segment segment = Walk(60, 0.05);
  Rng rng(5, "reward");
  for (double& r : segment.r) r = rng.Normal();
  const DistanceFit fit(Describe(SquaresLift(), segment));
  EXPECT_GE(fit.Unexplained(), 0.3);
}

TEST(DistanceFit, IsFiniteWhereNothingVaries) {
  Segment still = Walk(5, 0.0);
  still.x.setZero();
  still.a.setZero();
  still.r.setConstant(-1.0);
  const DistanceFit fit(Describe(SquaresLift(), still));
  EXPECT_TRUE(fit.Goal().allFinite());
  EXPECT_TRUE(fit.Told().allFinite());
  EXPECT_TRUE(std::isfinite(fit.Unexplained()));
}

TEST(DistanceFit, NeedsTheSquares) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 3, 2, {}});
  EXPECT_THROW(DistanceFit(Describe(lift, Walk(9, 0.1))), UserError);
}

TEST(DistanceFit, DerivativesAreThoseOfDifferences) {
  const Lift::Ptr lift = SquaresLift();
  Segment segment = Walk(40, 0.4);
  Rng rng(6, "derivatives");
  for (double& r : segment.r) r += 0.1 * rng.Normal();  // so that something is left unexplained
  const SegmentMatrix z = Describe(lift, segment);
  const Eigen::Vector2d d_goal(0.3, -0.8);
  const double d_steepness = 0.7;
  const Eigen::Vector3d d_told(2e5, -1e5, 3e5);
  const double d_unexplained = 1.3;
  const auto value = [&](const SegmentMatrix& at) {
    const DistanceFit fit(at);
    return d_goal.dot(fit.Goal()) + d_steepness * fit.Steepness() + d_told.dot(fit.Told()) +
           d_unexplained * fit.Unexplained();
  };
  std::vector<double> gradient(z.packed().size(), 0.0);
  DistanceFit(z).PullBack(d_goal, d_steepness, d_told, d_unexplained, gradient.data());
  int met = 0;
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    const double h = 1e-5 * (1.0 + std::abs(z.packed()[k]));
    const auto moved = [&](double by) {
      std::vector<double> packed(z.packed().begin(), z.packed().end());
      packed[k] += by * h;
      return value(SegmentMatrix::FromPacked(lift, packed));
    };
    // of fourth order: differences of two are too coarse for these second derivatives
    const double slope =
        (8.0 * (moved(1.0) - moved(-1.0)) - (moved(2.0) - moved(-2.0))) / (12.0 * h);
    EXPECT_NEAR(gradient[k], slope, Tol(1e-5) * (1.0 + std::abs(slope))) << k;
    if (slope != 0.0) ++met;
  }
  EXPECT_GE(met, 40);
}

TEST(DistanceFit, DoesNotAllocate) {
  const SegmentMatrix z = Describe(SquaresLift(), Walk(30, 0.1));
  std::vector<double> gradient(z.packed().size(), 0.0);
  const std::int64_t before = AllocationCount();
  const DistanceFit fit(z);
  fit.PullBack(fit.Goal(), fit.Steepness(), fit.Told(), fit.Unexplained(), gradient.data());
  EXPECT_EQ(AllocationCount(), before);
}

}  // namespace
}  // namespace msrl
