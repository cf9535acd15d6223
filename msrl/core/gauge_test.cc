#include "msrl/core/gauge.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::Scene;
using testing::Tol;

Eigen::MatrixXd Kronecker(const Eigen::MatrixXd& u, const Eigen::MatrixXd& s) {
  Eigen::MatrixXd product(u.rows() * s.rows(), u.cols() * s.cols());
  for (Index i = 0; i < u.rows(); ++i) {
    for (Index j = 0; j < u.cols(); ++j) {
      product.block(i * s.rows(), j * s.cols(), s.rows(), s.cols()) = u(i, j) * s;
    }
  }
  return product;
}

// H as the paper writes it.
Eigen::MatrixXd DenseH(const Lift& lift, const Gauge& gauge) {
  Eigen::MatrixXd h = Eigen::MatrixXd::Zero(lift.m(), lift.m());
  for (const LiftBlock& block : lift.blocks()) {
    auto corner = h.block(block.offset, block.offset, block.size, block.size);
    if (block.name == "xi_c" || block.name == "xi_delta") {
      corner = Kronecker(gauge.U, gauge.S);
    } else if (block.name == "a") {
      corner = gauge.U;
    } else if (block.size == lift.d() && block.name != "r" && block.name != "1") {
      corner = gauge.S;
    } else {
      corner.setIdentity();
    }
  }
  return h;
}

// Theorem "Well-definedness up to gauge": recomputing from transformed data, the blockwise action
// and the dense congruence agree.
RC_GTEST_PROP(GaugeProperty, TransformedDataGivesTheCongruentMatrix, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment();
  const Gauge gauge = scene.RandomGauge();
  const SegmentMatrix matrix = Describe(scene.lift, segment);
  const Eigen::MatrixXd recomputed = Describe(scene.lift, ApplyGauge(segment, gauge)).Dense();
  const Eigen::MatrixXd blockwise = ApplyGauge(matrix, gauge).Dense();
  const Eigen::MatrixXd h = DenseH(*scene.lift, gauge);
  const Eigen::MatrixXd dense = h * matrix.Dense() * h.transpose();
  const double scale = h.squaredNorm() * matrix.Norm();
  RC_ASSERT((recomputed - dense).norm() <= Tol(1e-13) * scale);
  RC_ASSERT((blockwise - dense).norm() <= Tol(1e-13) * scale);
}

RC_GTEST_PROP(GaugeProperty, InverseUndoesIt, ()) {
  Scene scene = DrawScene();
  const SegmentMatrix matrix = Describe(scene.lift, scene.RandomSegment());
  const Gauge gauge = scene.RandomGauge();
  const SegmentMatrix back = ApplyGauge(ApplyGauge(matrix, gauge), gauge.Inverse());
  RC_ASSERT(back.Distance(matrix) <= Tol(1e-10) * matrix.Norm());
}

RC_GTEST_PROP(InvariantsProperty, DoNotMoveUnderAnyGauge, ()) {
  Scene scene = DrawScene();
  const SegmentMatrix matrix = Describe(scene.lift, scene.RandomSegment());
  const Eigen::VectorXd before = CongruenceInvariants(matrix);
  const Eigen::VectorXd after = CongruenceInvariants(ApplyGauge(matrix, scene.RandomGauge()));
  RC_ASSERT(before.size() == after.size());
  RC_ASSERT(before.allFinite());
  RC_ASSERT((before - after).norm() <= Tol(1e-6) * (1.0 + before.norm()));
}

// ... but they do move with the data: a reversed, re-rewarded or bent segment is told apart.
RC_GTEST_PROP(InvariantsProperty, MoveWithTheData, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment(5 + scene.steps);
  Segment bent = segment;
  bent.x.col(2) *= 1.5;
  const Eigen::VectorXd a = CongruenceInvariants(Describe(scene.lift, segment));
  const Eigen::VectorXd b = CongruenceInvariants(Describe(scene.lift, bent));
  RC_ASSERT((a - b).norm() > 1e-6);
}

TEST(Gauge, RefusesSizesThatDoNotFitAndSingularFactors) {
  const SegmentMatrix matrix(Lift::Make({LiftKind::kFull, 2, 3, {}}));
  EXPECT_NO_THROW(ApplyGauge(matrix, Gauge::Identity(2, 3)));
  EXPECT_THROW(ApplyGauge(matrix, Gauge::Identity(3, 3)), UserError);
  EXPECT_THROW(ApplyGauge(matrix, Gauge::Identity(2, 2)), UserError);
  Gauge singular = Gauge::Identity(2, 3);
  singular.S.setOnes();
  EXPECT_THROW(singular.Inverse(), UserError);
}

Segment FiveSteps(Index d) {
  return {Eigen::MatrixXd::Random(d, 6), Eigen::MatrixXd::Random(2, 5), Eigen::VectorXd::Random(5)};
}

TEST(Gauge, EffortAllowsRotationsOnly) {
  const auto lift = Lift::Make({LiftKind::kCompactEffort, 2, 2, {}});
  const Segment segment = FiveSteps(2);
  Gauge gauge = Gauge::Identity(2, 2);
  gauge.U << 0.6, -0.8, 0.8, 0.6;
  const SegmentMatrix turned = ApplyGauge(Describe(lift, segment), gauge);
  EXPECT_LE(turned.Distance(Describe(lift, ApplyGauge(segment, gauge))), 1e-12 * turned.Norm());
  gauge.U *= 2.0;
  EXPECT_THROW(ApplyGauge(Describe(lift, segment), gauge), UserError);
}

TEST(Gauge, SquaresAllowRotationsOfThePositionOnly) {
  const auto lift = Lift::Make({LiftKind::kCompactSquares, 3, 2, {}});
  const Segment segment = FiveSteps(3);
  Gauge gauge = Gauge::Identity(3, 2);
  gauge.S.topLeftCorner(2, 2) << 0.6, -0.8, 0.8, 0.6;
  gauge.S.row(2) << 1.0, 2.0, 3.0;
  const SegmentMatrix turned = ApplyGauge(Describe(lift, segment), gauge);
  EXPECT_LE(turned.Distance(Describe(lift, ApplyGauge(segment, gauge))), 1e-12 * turned.Norm());
  Gauge mixed = gauge;
  mixed.S(0, 2) = 0.1;
  EXPECT_THROW(ApplyGauge(turned, mixed), UserError);
  gauge.S *= 2.0;
  EXPECT_THROW(ApplyGauge(turned, gauge), UserError);
}

}  // namespace
}  // namespace msrl
