// M(tau) = sum_t psi_t psi_t^T: the descriptor of a trajectory segment (paper, Definition 2.1).
#ifndef MSRL_CORE_SEGMENT_MATRIX_H_
#define MSRL_CORE_SEGMENT_MATRIX_H_

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "msrl/core/lift.h"

namespace msrl {

// A symmetric m x m matrix with the lift it was made with, in double, packed (m(m+1)/2 numbers).
// Sums of steps are positive semidefinite; glued candidates need not be.
class SegmentMatrix {
 public:
  // The empty segment: zero, horizon 0.
  explicit SegmentMatrix(Lift::Ptr lift);
  // UserError unless `dense` is m x m, finite and symmetric to 1e-12 of its largest entry.
  static SegmentMatrix FromDense(Lift::Ptr lift, const Eigen::MatrixXd& dense);
  // UserError unless `packed` has m(m+1)/2 finite numbers.
  static SegmentMatrix FromPacked(Lift::Ptr lift, std::vector<double> packed);

  const Lift::Ptr& lift() const { return lift_; }
  Index dim() const { return lift_->m(); }
  std::span<const double> packed() const { return packed_; }
  double operator()(Index i, Index j) const;

  // M_11, the horizon T of a genuine segment.
  double HorizonEntry() const;
  // M_11 as a whole number. InvariantError if it is none: then the matrix is only a candidate.
  std::int64_t Horizon() const;

  // += psi psi^T, psi of size m made by the same lift. O(m^2/2), no allocation.
  void AddStep(const Eigen::Ref<const Eigen::VectorXd>& psi);
  // += sum over the columns psi_t of psi_t psi_t^T: one blocked SYRK.
  void AddSteps(const Eigen::Ref<const Eigen::MatrixXd>& psi);
  // += a matrix of the same lift, given as its m(m+1)/2 packed numbers. No allocation.
  void AddPacked(std::span<const double> packed);
  void SetZero();
  // The congruence that replaces channel k by u psi_i + v psi_j, neither of which is k: what the
  // matrix would be if every step had been lifted so. No allocation.
  void ReplaceChannel(Index k, double u, Index i, double v, Index j);

  // UserError if the lifts differ.
  SegmentMatrix& operator+=(const SegmentMatrix& other);
  SegmentMatrix& operator-=(const SegmentMatrix& other);
  SegmentMatrix& operator*=(double factor);
  friend SegmentMatrix operator+(SegmentMatrix a, const SegmentMatrix& b) { return a += b; }
  friend SegmentMatrix operator-(SegmentMatrix a, const SegmentMatrix& b) { return a -= b; }
  // Same lift and same bits.
  bool operator==(const SegmentMatrix& other) const;

  // Frobenius. UserError if the lifts differ.
  double Inner(const SegmentMatrix& other) const;
  double Distance(const SegmentMatrix& other) const;
  double Norm() const;
  double Trace() const;

  Eigen::MatrixXd Dense() const;
  // M_{rows,columns} by block name, e.g. Block("c", "delta").
  Eigen::MatrixXd Block(std::string_view rows, std::string_view columns) const;

  // Ascending.
  Eigen::VectorXd Eigenvalues() const;
  // Smallest eigenvalue >= -tolerance * largest absolute eigenvalue.
  bool IsPsd(double tolerance = 1e-10) const;

 private:
  Lift::Ptr lift_;
  std::vector<double> packed_;
};

}  // namespace msrl

#endif  // MSRL_CORE_SEGMENT_MATRIX_H_
