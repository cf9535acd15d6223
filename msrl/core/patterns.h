// What a matrix says about the shape of the data behind it: the identities of the paper's appendix
// "Symbolic subgraph patterns", each as a distance from the identity, and the end points of a path.
//
// The identities are about midpoints c and displacements delta. Compact lifts keep x instead of c;
// since c = x + delta/2 they are first brought to midpoint form, so everything here works for all
// lifts.
#ifndef MSRL_CORE_PATTERNS_H_
#define MSRL_CORE_PATTERNS_H_

#include <Eigen/Core>
#include <string>
#include <vector>

#include "msrl/core/segment_matrix.h"

namespace msrl {

// The congruence c = x + dx/2 on a compact lift (the block keeps the name "x"); full lifts
// unchanged.
SegmentMatrix MidpointForm(const SegmentMatrix& matrix);

// How far a matrix is from an identity.
struct PatternResidual {
  std::string name;
  double residual = 0.0;  // Frobenius norm of what should vanish
  double scale = 0.0;     // an upper bound of it for any matrix with the same diagonal blocks
  // residual / scale, 0 if both are 0.
  double Relative() const { return scale > 0.0 ? residual / scale : residual; }
  bool Holds(double tolerance = 1e-9) const { return Relative() <= tolerance; }
};

// Even channels (c, xi_c, a, r, 1) against odd ones (delta, xi_delta): all zero if every edge has
// its reverse with the same action and reward (Lemma "Block parity").
PatternResidual ReversalParity(const SegmentMatrix& matrix);

// Only M_{c delta} and M_{delta 1}: zero as well if actions or rewards differ between the
// directions.
PatternResidual GeometricReversalParity(const SegmentMatrix& matrix);

// The matrix of the same edges, all turned round: odd channels change sign. UserError on the lift
// compact-squares, which does not hold it.
SegmentMatrix ReverseEdges(const SegmentMatrix& matrix);

// Distance of `reversed` from ReverseEdges(matrix).
PatternResidual EdgeReversal(const SegmentMatrix& matrix, const SegmentMatrix& reversed);

// M_{delta 1} = x_T - x_0 and M_{c delta} + M_{delta c} = x_T x_T^T - x_0 x_0^T for given end
// points.
PatternResidual PathTelescoping(const SegmentMatrix& matrix, const Eigen::VectorXd& x_0,
                                const Eigen::VectorXd& x_T);
// The same with the end points recovered from the matrix: says whether it can be that of one path.
PatternResidual PathTelescoping(const SegmentMatrix& matrix);

// M_{delta 1} = 0 and M_{c delta} skew-symmetric: a closed path.
PatternResidual CycleSkewness(const SegmentMatrix& matrix);
// The skew part of M_{c delta}, (M_{c delta} - M_{delta c}) / 2: oriented circulation.
Eigen::MatrixXd Circulation(const SegmentMatrix& matrix);

// One-hot actions: tensor blocks are block-diagonal and sum to the unconditioned blocks (full
// lift); M_aa is diagonal and equals M_{a 1}, which sums to T (compact). UserError if the lift has
// no action channel.
PatternResidual ActionPartition(const SegmentMatrix& matrix);

// All of the above that the lift supports and that need nothing but the matrix.
std::vector<PatternResidual> AllPatterns(const SegmentMatrix& matrix);

// The first and last state of a path, recovered from telescoping sums alone: with
// d = M_{delta 1} and S = M_{c delta} + M_{delta c} - d d^T = d x_0^T + x_0 d^T,
//   x_0 = (S d - d (d^T S d) / (2 |d|^2)) / |d|^2,   x_T = x_0 + d.
struct Endpoints {
  bool defined = false;  // false if d is zero up to rounding (a closed path)
  Eigen::VectorXd x_0;
  Eigen::VectorXd x_T;
  // Errors of the matrix entries reach x_0 multiplied by up to this: 1.5 / |d| (infinite if |d| =
  // 0).
  double amplification = 0.0;
  // A bound on the error of each end point that rounding of the sums in double can cause.
  double error_bound = 0.0;
};
Endpoints RecoverEndpoints(const SegmentMatrix& matrix);

}  // namespace msrl

#endif  // MSRL_CORE_PATTERNS_H_
