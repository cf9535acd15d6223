#include "msrl/core/segment_matrix.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <Eigen/Eigenvalues>
#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/core/segment.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::NaiveMatrix;
using testing::Scene;
using testing::Tol;
using testing::UserErrorText;

// Theorem "Well-definedness up to gauge", first part.
RC_GTEST_PROP(SegmentMatrixProperty, IsTheSumOfOuterProducts, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment();
  const Eigen::MatrixXd naive = NaiveMatrix(*scene.lift, segment);
  const SegmentMatrix batched = Describe(scene.lift, segment);
  SegmentMatrix stepped(scene.lift);
  const Eigen::MatrixXd psi = LiftedSteps(*scene.lift, segment);
  for (Index t = 0; t < psi.cols(); ++t) stepped.AddStep(psi.col(t));

  const double tolerance = Tol(1e-13) * naive.norm();
  RC_ASSERT((batched.Dense() - naive).norm() <= tolerance);
  RC_ASSERT((stepped.Dense() - naive).norm() <= tolerance);
  RC_ASSERT(batched.Horizon() == segment.horizon());
  RC_ASSERT(stepped.Horizon() == segment.horizon());
}

RC_GTEST_PROP(SegmentMatrixProperty, IsPositiveSemidefinite, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment();
  const SegmentMatrix matrix = Describe(scene.lift, segment);
  RC_ASSERT(matrix.IsPsd());
  // v^T M v = sum_t (v . psi_t)^2
  const Eigen::VectorXd v = scene.Vector(matrix.dim());
  const Eigen::MatrixXd psi = LiftedSteps(*scene.lift, segment);
  const double quadratic = v.dot(matrix.Dense() * v);
  const double squares = (psi.transpose() * v).squaredNorm();
  RC_ASSERT(std::abs(quadratic - squares) <= Tol(1e-12) * v.squaredNorm() * matrix.Trace());
}

RC_GTEST_PROP(SegmentMatrixProperty, FrobeniusGeometryMatchesDense, ()) {
  Scene scene = DrawScene();
  const SegmentMatrix a = Describe(scene.lift, scene.RandomSegment());
  const SegmentMatrix b = Describe(scene.lift, scene.RandomSegment());
  const Eigen::MatrixXd dense_a = a.Dense();
  const Eigen::MatrixXd dense_b = b.Dense();
  const double scale = dense_a.norm() * dense_b.norm();
  RC_ASSERT(std::abs(a.Inner(b) - dense_a.cwiseProduct(dense_b).sum()) <= Tol(1e-13) * scale);
  RC_ASSERT(std::abs(a.Norm() - dense_a.norm()) <= Tol(1e-13) * dense_a.norm());
  RC_ASSERT(std::abs(a.Distance(b) - (dense_a - dense_b).norm()) <=
            Tol(1e-13) * (dense_a.norm() + dense_b.norm()));
  RC_ASSERT(std::abs(a.Trace() - dense_a.trace()) <= Tol(1e-13) * dense_a.trace());
}

RC_GTEST_PROP(SegmentMatrixProperty, BlocksTileTheMatrix, ()) {
  Scene scene = DrawScene();
  const SegmentMatrix matrix = Describe(scene.lift, scene.RandomSegment());
  Eigen::MatrixXd assembled(matrix.dim(), matrix.dim());
  for (const LiftBlock& row : scene.lift->blocks()) {
    for (const LiftBlock& column : scene.lift->blocks()) {
      assembled.block(row.offset, column.offset, row.size, column.size) =
          matrix.Block(row.name, column.name);
    }
  }
  RC_ASSERT(assembled == matrix.Dense());
}

// Every size and step count, around the edges of the blocked kernel.
TEST(PackedSyrk, MatchesDenseForAllSmallShapes) {
  Rng rng(0, "shapes");
  for (Index m = 1; m <= 40; ++m) {
    for (const Index steps : {0, 1, 7, 8, 9, 191, 192, 193, 400}) {
      Eigen::MatrixXd psi(m, steps);
      for (double& value : psi.reshaped()) value = rng.Normal();
      const Eigen::MatrixXd expected = psi * psi.transpose();
      std::vector<double> packed(static_cast<std::size_t>(internal::PackedSize(m)), 0.0);
      internal::PackedSyrk(psi.data(), m, steps, m, packed.data());
      for (Index j = 0; j < m; ++j) {
        for (Index i = 0; i <= j; ++i) {
          ASSERT_NEAR(packed[static_cast<std::size_t>(internal::PackedIndex(i, j))], expected(i, j),
                      Tol(1e-11))
              << "m=" << m << " T=" << steps << " (" << i << "," << j << ")";
        }
      }
    }
  }
}

TEST(PackedSyrk, RespectsTheColumnStride) {
  const Eigen::MatrixXd wide = Eigen::MatrixXd::Random(10, 50);
  const auto lift = Lift::Make({LiftKind::kCompactNoAction, 2, 0, {}});
  SegmentMatrix matrix(lift);
  matrix.AddSteps(wide.topRows(lift->m()));
  const Eigen::MatrixXd part = wide.topRows(lift->m());
  EXPECT_LE((matrix.Dense() - part * part.transpose()).norm(), Tol(1e-12));
}

TEST(SegmentMatrix, EmptySegmentIsZero) {
  const SegmentMatrix zero(Lift::Make({LiftKind::kFull, 3, 2, {}}));
  EXPECT_EQ(zero.Horizon(), 0);
  EXPECT_EQ(zero.Norm(), 0.0);
  EXPECT_TRUE(zero.IsPsd());
}

TEST(SegmentMatrix, RefusesToMixLifts) {
  SegmentMatrix a(Lift::Make({LiftKind::kCompact, 2, 2, {}}));
  const SegmentMatrix b(Lift::Make({LiftKind::kFull, 2, 2, {}}));
  EXPECT_THROW(a += b, UserError);
  EXPECT_THROW(a -= b, UserError);
  EXPECT_THROW(a.Inner(b), UserError);
  EXPECT_THROW(a.Distance(b), UserError);
  const std::string text = UserErrorText([&] { a += b; });
  EXPECT_NE(text.find("compact d=2 q=2 [x 2, dx 2, a 2, r 1, 1 1]"), std::string::npos) << text;
  EXPECT_NE(text.find("full d=2 q=2 [c 2, delta 2, xi_c 4, xi_delta 4, r 1, 1 1]"),
            std::string::npos)
      << text;
}

TEST(SegmentMatrix, EqualLiftsMadeTwiceMix) {
  SegmentMatrix a(Lift::Make({LiftKind::kCompact, 2, 2, {}}));
  const SegmentMatrix b(Lift::Make({LiftKind::kCompact, 2, 2, {}}));
  EXPECT_NO_THROW(a += b);
}

TEST(SegmentMatrix, FromDenseRefusesBadMatrices) {
  const auto lift = Lift::Make({LiftKind::kCompactNoAction, 1, 0, {}});
  Eigen::MatrixXd dense = Eigen::MatrixXd::Identity(4, 4);
  EXPECT_NO_THROW(SegmentMatrix::FromDense(lift, dense));
  dense(0, 1) = 1.0;
  EXPECT_THROW(SegmentMatrix::FromDense(lift, dense), UserError);
  dense(1, 0) = 1.0;
  EXPECT_NO_THROW(SegmentMatrix::FromDense(lift, dense));
  dense(2, 2) = std::nan("");
  EXPECT_THROW(SegmentMatrix::FromDense(lift, dense), UserError);
  EXPECT_THROW(SegmentMatrix::FromDense(lift, Eigen::MatrixXd::Identity(3, 3)), UserError);
  EXPECT_THROW(SegmentMatrix::FromPacked(lift, std::vector<double>(9, 0.0)), UserError);
}

TEST(SegmentMatrix, PsdCheckCanFail) {
  const auto lift = Lift::Make({LiftKind::kCompactNoAction, 1, 0, {}});
  Eigen::MatrixXd dense = Eigen::MatrixXd::Identity(4, 4);
  dense(1, 1) = -1e-3;
  EXPECT_FALSE(SegmentMatrix::FromDense(lift, dense).IsPsd());
}

TEST(SegmentMatrix, HorizonOfACandidateIsAnError) {
  SegmentMatrix half(Lift::Make({LiftKind::kCompact, 1, 1, {}}));
  half.AddStep(Eigen::VectorXd::Ones(half.dim()));
  half *= 0.5;
  EXPECT_THROW(half.Horizon(), InvariantError);
  EXPECT_EQ(half.HorizonEntry(), 0.5);
}

// Scales from 1e-30 to 1e30 stay symmetric, finite and semidefinite.
TEST(SegmentMatrix, SurvivesExtremeScales) {
  Rng rng(0, "extreme");
  const auto lift = Lift::Make({LiftKind::kFull, 2, 2, {}});
  for (int exponent = -30; exponent <= 30; exponent += 3) {
    Segment segment;
    segment.x = Eigen::MatrixXd::Random(2, 21) * std::pow(10.0, exponent);
    segment.a = Eigen::MatrixXd::Random(2, 20) * std::pow(10.0, rng.Uniform(-30, 30));
    segment.r = Eigen::VectorXd::Random(20);
    const SegmentMatrix matrix = Describe(lift, segment);
    EXPECT_TRUE(matrix.Dense().allFinite()) << exponent;
    EXPECT_GE(matrix.Eigenvalues().minCoeff(), -1e-10 * matrix.Trace()) << exponent;
  }
}

}  // namespace
}  // namespace msrl
