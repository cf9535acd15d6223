#include "msrl/core/ridge.h"

#include <gtest/gtest.h>

#include <Eigen/LU>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

// Actions move the state by B a, and the reward is 2 x_0 - |a|^2 plus a little noise.
Segment Walk(Index steps, std::uint64_t seed) {
  Rng rng(seed, "walk");
  Segment segment;
  segment.x = Eigen::MatrixXd::Zero(2, steps + 1);
  segment.a.resize(2, steps);
  segment.r.resize(steps);
  Eigen::Matrix2d effect;
  effect << 0.5, 0.0, -0.25, 0.4;
  for (Index t = 0; t < steps; ++t) {
    for (int i = 0; i < 2; ++i) segment.a(i, t) = rng.Uniform(-1.0, 1.0);
    segment.x.col(t + 1) = segment.x.col(t) + effect * segment.a.col(t);
    segment.r[t] =
        3.0 + 2.0 * segment.x(0, t) - segment.a.col(t).squaredNorm() + 0.01 * rng.Normal();
  }
  return segment;
}

// The same from the transitions, centred, by the normal equations.
TEST(Ridge, IsTheRegressionOverTheTransitions) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 2, 2, {}});
  const Segment walk = Walk(40, 1);
  Eigen::MatrixXd psi(lift->m(), 40);
  for (Index t = 0; t < 40; ++t) {
    lift->Apply(walk.x.col(t), walk.a.col(t), walk.r[t], walk.x.col(t + 1), psi.col(t));
  }
  const Eigen::VectorXd mean = psi.rowwise().mean();
  const Eigen::MatrixXd centred = psi.colwise() - mean;
  const std::vector<int> on{0, 4, 6};
  const int reward = 7;
  Eigen::MatrixXd x(3, 40);
  for (Index i = 0; i < 3; ++i) x.row(i) = centred.row(on[static_cast<std::size_t>(i)]);
  const Eigen::VectorXd y = centred.row(reward).transpose();
  Eigen::MatrixXd a = x * x.transpose() / 40.0;
  a.diagonal().array() += 1e-3 * (1.0 / 40.0 + a.trace() / 3.0);
  const Eigen::VectorXd slope = a.inverse() * (x * y) / 40.0;
  const double variance = (y - x.transpose() * slope).squaredNorm() / 40.0;

  const ChannelMoments<16> moments(Describe(lift, walk));
  const Ridge<16> ridge(moments, on, reward);
  for (Index i = 0; i < 3; ++i) EXPECT_NEAR(ridge.slope()[i], slope[i], Tol(1e-10));
  EXPECT_NEAR(ridge.variance(), variance, Tol(1e-10));
  EXPECT_NEAR(ridge.Error(1), std::sqrt(variance * a.inverse()(1, 1) / 40.0), Tol(1e-10));
  EXPECT_NEAR(ridge.Intercept(),
              mean[reward] - slope[0] * mean[0] - slope[1] * mean[4] - slope[2] * mean[6],
              Tol(1e-10));
}

TEST(Regressions, SayWhichActionMovesWhatAndWhatIsRewarded) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 2, 2, {}});
  const std::vector<ChannelRegression> found = Regressions(Describe(lift, Walk(400, 2)));
  ASSERT_EQ(found.size(), 3u);
  const auto slope = [](const ChannelRegression& regression, std::string_view channel) {
    for (const auto& term : regression.terms) {
      if (term.channel == channel) return term.slope;
    }
    return std::nan("");
  };
  EXPECT_EQ(found[0].of, "r");
  EXPECT_NEAR(slope(found[0], "x[0]"), 2.0, 0.05);
  EXPECT_NEAR(slope(found[0], "e"), -1.0, 0.05);
  EXPECT_NEAR(slope(found[0], "a[0]"), 0.0, 0.05);
  EXPECT_NEAR(found[0].intercept, 3.0, 0.1);
  EXPECT_GT(found[0].explained, 0.99);
  EXPECT_EQ(found[1].of, "dx[0]");
  EXPECT_NEAR(slope(found[1], "a[0]"), 0.5, 0.01);
  EXPECT_NEAR(slope(found[1], "a[1]"), 0.0, 0.01);
  EXPECT_EQ(found[2].of, "dx[1]");
  EXPECT_NEAR(slope(found[2], "a[0]"), -0.25, 0.01);
}

TEST(Regressions, LeaveOutWhatDoesNotVary) {
  const auto lift = Lift::Make({LiftKind::kCompact, 2, 2, {}});
  EXPECT_TRUE(Regressions(SegmentMatrix(lift)).empty());
  EXPECT_TRUE(Regressions(Describe(lift, Walk(1, 3))).empty());
  Segment still = Walk(20, 4);
  still.a.setZero();
  still.x.setConstant(0.1);
  EXPECT_TRUE(Regressions(Describe(lift, still)).empty());
  EXPECT_THROW(Regressions(SegmentMatrix(Lift::Make({LiftKind::kFull, 2, 2, {}}))), UserError);
}

}  // namespace
}  // namespace msrl
