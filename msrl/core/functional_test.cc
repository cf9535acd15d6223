#include "msrl/core/functional.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"
#include "msrl/core/symmetric_eigen.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::NaiveMatrix;
using testing::Scene;
using testing::Tol;

AdditiveFunctional RandomFunctional(Scene& scene) {
  const Index n = scene.lift->m() - 1;
  const Eigen::MatrixXd half = scene.Matrix(n, n);
  return {scene.rng.Normal(), scene.Vector(n), half + half.transpose()};
}

// Theorem "Completeness", forward: F(tau) = <A, M(tau)> for every (a, b, C).
RC_GTEST_PROP(FunctionalProperty, SumOverStepsEqualsInnerProduct, ()) {
  Scene scene = DrawScene();
  const AdditiveFunctional functional = RandomFunctional(scene);
  const Segment segment = scene.RandomSegment();
  const double on_steps = Evaluate(functional, *scene.lift, segment);
  const SegmentMatrix a = FunctionalToMatrix(scene.lift, functional);
  const double on_matrix = Evaluate(functional, Describe(scene.lift, segment));
  const double on_naive = a.Dense().cwiseProduct(NaiveMatrix(*scene.lift, segment)).sum();
  const double scale = a.Norm() * NaiveMatrix(*scene.lift, segment).norm();
  RC_ASSERT(std::abs(on_steps - on_matrix) <= Tol(1e-12) * scale);
  RC_ASSERT(std::abs(on_steps - on_naive) <= Tol(1e-12) * scale);
}

// Backward: every symmetric A is a functional, and the two maps are inverse.
RC_GTEST_PROP(FunctionalProperty, MapsAreInverse, ()) {
  Scene scene = DrawScene();
  const Eigen::MatrixXd half = scene.Matrix(scene.lift->m(), scene.lift->m());
  const SegmentMatrix a = SegmentMatrix::FromDense(scene.lift, half + half.transpose());
  const SegmentMatrix again = FunctionalToMatrix(scene.lift, MatrixToFunctional(a));
  RC_ASSERT(again == a);
}

// The functionals determine the matrix: one per entry recovers it from raw steps alone.
RC_GTEST_PROP(FunctionalProperty, FunctionalsDetermineTheMatrix, ()) {
  Scene scene = DrawScene({.max_d = 2, .max_q = 2});
  const Segment segment = scene.RandomSegment(*rc::gen::inRange<Index>(0, 5));
  const Index m = scene.lift->m();
  Eigen::MatrixXd recovered(m, m);
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < m; ++j) {
      Eigen::MatrixXd unit = Eigen::MatrixXd::Zero(m, m);
      unit(i, j) += 0.5;
      unit(j, i) += 0.5;
      recovered(i, j) = Evaluate(MatrixToFunctional(SegmentMatrix::FromDense(scene.lift, unit)),
                                 *scene.lift, segment);
    }
  }
  const Eigen::MatrixXd naive = NaiveMatrix(*scene.lift, segment);
  RC_ASSERT((recovered - naive).norm() <= Tol(1e-12) * naive.norm());
}

// Theorem "Minimal sufficiency": take any other additive descriptor D that is sufficient for the
// class, here D(tau) = sum_t B vech(psi_t psi_t^T) with a random injective B and p > s coordinates.
// The matrix is a function of it: M = rho(D).
RC_GTEST_PROP(MinimalSufficiencyProperty, MatrixIsAFunctionOfEveryAdmissibleDescriptor, ()) {
  Scene scene = DrawScene({.max_d = 2, .max_q = 1});
  const Index m = scene.lift->m();
  const Index s = internal::PackedSize(m);
  const Index p = s + 3;
  // B = Q diag(scales) V^T with orthonormal columns of Q: rho is V diag(1/scales) Q^T
  const auto orthogonal = [&](Index n) {
    const Eigen::MatrixXd gaussian = scene.Matrix(n, n);
    return internal::DecomposeSymmetric(gaussian + gaussian.transpose()).vectors;
  };
  const Eigen::MatrixXd q = orthogonal(p).leftCols(s);
  const Eigen::MatrixXd v = orthogonal(s);
  const Eigen::VectorXd scales = scene.Vector(s).array().exp();
  const Eigen::MatrixXd b = q * scales.asDiagonal() * v.transpose();
  const Segment segment = scene.RandomSegment(*rc::gen::inRange<Index>(0, 20));

  // the descriptor, step by step from the raw lift
  const Eigen::MatrixXd psi = LiftedSteps(*scene.lift, segment);
  Eigen::VectorXd descriptor = Eigen::VectorXd::Zero(p);
  for (Index t = 0; t < psi.cols(); ++t) {
    Eigen::VectorXd vech(s);
    for (Index j = 0; j < m; ++j) {
      for (Index i = 0; i <= j; ++i) vech[internal::PackedIndex(i, j)] = psi(i, t) * psi(j, t);
    }
    descriptor += b * vech;
  }
  const Eigen::VectorXd recovered = v * (q.transpose() * descriptor).cwiseQuotient(scales);
  const SegmentMatrix direct = Describe(scene.lift, segment);
  const Eigen::Map<const Eigen::VectorXd> packed(direct.packed().data(), s);
  // rounding grows with the condition of B
  const double condition = scales.maxCoeff() / scales.minCoeff();
  RC_ASSERT((recovered - packed).norm() <= Tol(1e-12) * condition * packed.norm());
}

TEST(Functional, RefusesSizesThatDoNotFit) {
  const auto lift = Lift::Make({LiftKind::kCompact, 1, 1, {}});
  AdditiveFunctional functional{0.0, Eigen::VectorXd::Zero(3), Eigen::MatrixXd::Zero(4, 4)};
  EXPECT_THROW(FunctionalToMatrix(lift, functional), UserError);
  functional.b = Eigen::VectorXd::Zero(4);
  EXPECT_NO_THROW(FunctionalToMatrix(lift, functional));
  functional.C(0, 1) = 1.0;
  EXPECT_THROW(FunctionalToMatrix(lift, functional), UserError);
}

}  // namespace
}  // namespace msrl
