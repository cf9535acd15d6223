// The one place that instantiates Eigen's solver, which is slow to compile.
#ifndef MSRL_CORE_SYMMETRIC_EIGEN_H_
#define MSRL_CORE_SYMMETRIC_EIGEN_H_

#include <Eigen/Core>

namespace msrl::internal {

struct SymmetricEigen {
  Eigen::VectorXd values;   // ascending
  Eigen::MatrixXd vectors;  // columns, orthonormal
};

SymmetricEigen DecomposeSymmetric(const Eigen::MatrixXd& symmetric);

}  // namespace msrl::internal

#endif  // MSRL_CORE_SYMMETRIC_EIGEN_H_
