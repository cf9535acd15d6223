#include "msrl/core/functional.h"

#include "msrl/core/check.h"

namespace msrl {
namespace {

void RequireSize(const AdditiveFunctional& functional, Index n) {
  if (functional.b.size() != n || functional.C.rows() != n || functional.C.cols() != n) {
    throw UserError(StrCat("a functional on this lift needs b of size ", n, " and C of ", n, " x ",
                           n, ", got ", functional.b.size(), " and ", functional.C.rows(), " x ",
                           functional.C.cols()));
  }
}

}  // namespace

SegmentMatrix FunctionalToMatrix(const Lift::Ptr& lift, const AdditiveFunctional& functional) {
  const Index n = lift->m() - 1;
  RequireSize(functional, n);
  Eigen::MatrixXd dense(n + 1, n + 1);
  dense.topLeftCorner(n, n) = functional.C;
  dense.topRightCorner(n, 1) = 0.5 * functional.b;
  dense.bottomLeftCorner(1, n) = 0.5 * functional.b.transpose();
  dense(n, n) = functional.a;
  return SegmentMatrix::FromDense(lift, dense);
}

AdditiveFunctional MatrixToFunctional(const SegmentMatrix& matrix) {
  const Index n = matrix.dim() - 1;
  const Eigen::MatrixXd dense = matrix.Dense();
  return {.a = dense(n, n), .b = 2.0 * dense.topRightCorner(n, 1), .C = dense.topLeftCorner(n, n)};
}

double Evaluate(const AdditiveFunctional& functional, const SegmentMatrix& matrix) {
  return FunctionalToMatrix(matrix.lift(), functional).Inner(matrix);
}

double Evaluate(const AdditiveFunctional& functional, const Lift& lift, const Segment& segment) {
  const Index n = lift.m() - 1;
  RequireSize(functional, n);
  const Eigen::MatrixXd psi = LiftedSteps(lift, segment);
  double sum = 0.0;
  for (Index t = 0; t < psi.cols(); ++t) {
    const auto step = psi.col(t).head(n);
    sum += functional.a + functional.b.dot(step) + step.dot(functional.C * step);
  }
  return sum;
}

}  // namespace msrl
