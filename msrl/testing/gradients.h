// What tests of gradients share: random numbers to try them on, and central differences.
#ifndef MSRL_TESTING_GRADIENTS_H_
#define MSRL_TESTING_GRADIENTS_H_

#include <Eigen/Core>
#include <functional>

#include "msrl/core/rng.h"

namespace msrl::testing {

inline Eigen::MatrixXf RandomMatrix(Eigen::Index rows, Eigen::Index columns, Rng& rng) {
  Eigen::MatrixXf matrix(rows, columns);
  for (float& value : matrix.reshaped()) value = static_cast<float>(rng.Normal());
  return matrix;
}

// d f / d x by central differences; x, which f sees, is as before afterwards.
inline double Slope(double& x, const std::function<double()>& f) {
  const double h = 1e-6;
  const double saved = x;
  x = saved + h;
  const double above = f();
  x = saved - h;
  const double below = f();
  x = saved;
  return (above - below) / (2.0 * h);
}

}  // namespace msrl::testing

#endif  // MSRL_TESTING_GRADIENTS_H_
