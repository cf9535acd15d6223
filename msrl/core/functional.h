// Low-order additive functionals F(tau) = sum_t (a + b.psi' + psi'.C psi'), psi = [psi', 1]
// (paper, Definition "Low-order additive compositional class").
#ifndef MSRL_CORE_FUNCTIONAL_H_
#define MSRL_CORE_FUNCTIONAL_H_

#include <Eigen/Core>

#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

struct AdditiveFunctional {
  double a = 0.0;
  Eigen::VectorXd b;  // m-1
  Eigen::MatrixXd C;  // (m-1) x (m-1), symmetric
};

// A = [[C, b/2], [b/2^T, a]], so that F(tau) = <A, M(tau)> (Theorem "Completeness").
// UserError if the sizes don't fit the lift or C is not symmetric.
SegmentMatrix FunctionalToMatrix(const Lift::Ptr& lift, const AdditiveFunctional& functional);

// The other way round: every symmetric A is a functional.
AdditiveFunctional MatrixToFunctional(const SegmentMatrix& matrix);

// <A, M>.
double Evaluate(const AdditiveFunctional& functional, const SegmentMatrix& matrix);

// The defining sum over the steps of a raw segment.
double Evaluate(const AdditiveFunctional& functional, const Lift& lift, const Segment& segment);

}  // namespace msrl

#endif  // MSRL_CORE_FUNCTIONAL_H_
