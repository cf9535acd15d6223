// Coordinate changes x -> S x, a -> U a: they act on descriptors by congruence M -> H M H^T
// (paper, Theorem "Well-definedness up to gauge").
#ifndef MSRL_CORE_GAUGE_H_
#define MSRL_CORE_GAUGE_H_

#include <Eigen/Core>

#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

struct Gauge {
  Eigen::MatrixXd S;  // d x d, invertible
  Eigen::MatrixXd U;  // q x q, invertible

  static Gauge Identity(Index d, Index q);
  // UserError if a factor is singular to working precision.
  Gauge Inverse() const;
};

// H M H^T with H = BlkDiag(S, S, U(x)S, U(x)S, 1, 1) (full lift) or BlkDiag(S, S, U, 1, 1)
// (compact). H is never formed: O(m^2 (d + q)). UserError if the sizes don't fit, and on a U that
// is not orthogonal where the lift has the effort |a|^2.
SegmentMatrix ApplyGauge(const SegmentMatrix& matrix, const Gauge& gauge);

// The same coordinate change on raw data.
Segment ApplyGauge(const Segment& segment, const Gauge& gauge);

// Features of a matrix that do not move under any gauge (S, U), up to rounding times the condition
// of the gauge. Geometry and action channels are whitened by their own second moments (which
// transform alike); what is left is determined up to rotation, and rotation-invariant numbers are
// read off: spectra of the transport, of the symmetric and of the skew part of the incidence,
// canonical correlations with the action channels, and the Gram matrices of the first-order totals
// and reward couplings. The number of features depends on the lift only.
Eigen::VectorXd CongruenceInvariants(const SegmentMatrix& matrix);

}  // namespace msrl

#endif  // MSRL_CORE_GAUGE_H_
