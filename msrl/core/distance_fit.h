// Where is the goal of a reward that falls with the distance? With r = -u |x' - g| - c e, e = |a|^2
// and x' the position after the step,
//
//   r^2 = u^2 |x' - g|^2 - 2 c e r - c^2 e^2
//
// is linear in x', |x'|^2, e r and e^2. The lift compact-squares has these as channels, so that Z
// holds the regression: it finds g, u and c exactly, wherever the path went, unless it was a
// straight line.
//
// About the mean m of x' (C: covariances over the T transitions; S: the five regressors):
//   y = x' - m,   b = (C_SS + 1e-6 diag C_SS)^-1 C_S,rr of (y, |y|^2, e r, e^2)
//   u^2 = b_|y|^2,   g = m - b_y / (2 u^2)
#ifndef MSRL_CORE_DISTANCE_FIT_H_
#define MSRL_CORE_DISTANCE_FIT_H_

#include <Eigen/Cholesky>
#include <Eigen/Core>

#include "msrl/core/segment_matrix.h"

namespace msrl {

class DistanceFit {
 public:
  // Of T >= 1 transitions. UserError on lifts without these channels. No allocation.
  explicit DistanceFit(const SegmentMatrix& z);

  // g, in the coordinates of the first two slots.
  Eigen::Vector2d Goal() const;
  // u^2; negative where the reward does not fall with the distance.
  double Steepness() const { return b_[2]; }
  // How much of the coefficients of y and |y|^2 comes from the data, 1, rather than the prior, 0.
  Eigen::Vector3d Told() const;
  // The share of the variance of r^2 that such a reward does not explain.
  double Unexplained() const;

  // Adds the derivatives with respect to the stored triangle of Z of a function with these with
  // respect to what is above.
  void PullBack(const Eigen::Vector2d& d_goal, double d_steepness, const Eigen::Vector3d& d_told,
                double d_unexplained, double* d_packed) const;

 private:
  static constexpr int kChannels = 9;  // x and dx of the position, ee, er, rr, p, 1
  static constexpr int kSize = 5;      // |S|; rr is the next
  using Moments = Eigen::Matrix<double, kSize + 1, kSize + 1>;
  using Square = Eigen::Matrix<double, kSize, kSize>;
  using Vector = Eigen::Matrix<double, kSize, 1>;

  // Rows: y, |y|^2, er, ee, rr, of x', p, er, ee, rr.
  Moments Centring() const;
  double Left() const;

  Eigen::Matrix<Index, kChannels, 1> channel_;
  double horizon_;
  Eigen::Matrix<double, kSize + 2, kSize + 2> moments_;  // of x', p, er, ee, rr, 1
  Moments covariance_;                                   // of x', p, er, ee, rr
  Moments centred_;                                      // of y, |y|^2, er, ee, rr
  Eigen::LLT<Square> inverse_;
  Vector b_;
};

}  // namespace msrl

#endif  // MSRL_CORE_DISTANCE_FIT_H_
