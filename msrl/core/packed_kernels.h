// The two hot loops of the descriptor, on the packed upper triangle of a symmetric matrix.
//
// Packed means column by column, each from row 0 to the diagonal: entry (i, j), i <= j, is at
// j(j+1)/2 + i (LAPACK's 'U' packing).
#ifndef MSRL_CORE_PACKED_KERNELS_H_
#define MSRL_CORE_PACKED_KERNELS_H_

#include <Eigen/Core>

namespace msrl::internal {

using Eigen::Index;

constexpr Index PackedSize(Index m) { return m * (m + 1) / 2; }
constexpr Index PackedIndex(Index i, Index j) {
  return i <= j ? j * (j + 1) / 2 + i : i * (i + 1) / 2 + j;
}

// packed += psi psi^T. No allocation; every product and sum is rounded once, in the same order on
// every machine.
void PackedRank1Update(const double* psi, Index m, double* packed);

// packed += Psi Psi^T for Psi with m rows and `steps` columns, `stride` doubles between columns.
// Blocked and vectorised; sums are ordered otherwise than by steps, so results agree with repeated
// rank-1 updates only up to rounding.
void PackedSyrk(const double* psi, Index m, Index steps, Index stride, double* packed);

}  // namespace msrl::internal

#endif  // MSRL_CORE_PACKED_KERNELS_H_
