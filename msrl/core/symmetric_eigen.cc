#include "msrl/core/symmetric_eigen.h"

#include <Eigen/Eigenvalues>

#include "msrl/core/check.h"

namespace msrl::internal {

SymmetricEigen DecomposeSymmetric(const Eigen::MatrixXd& symmetric) {
  if (symmetric.size() == 0) return {};
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  MSRL_CHECK(solver.info() == Eigen::Success, "the eigenvalue iteration did not converge");
  return {solver.eigenvalues(), solver.eigenvectors()};
}

}  // namespace msrl::internal
