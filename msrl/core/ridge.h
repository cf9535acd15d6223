// Ridge regressions between channels of a descriptor, in closed form: second moments are all that
// least squares needs, so Z answers "what is rewarded" and "which action moves what" exactly as the
// transitions themselves would.
//
// With C the covariance of the channels over the T transitions, of channel y on channels S:
//   b = (C_SS + lambda I)^-1 C_Sy,   lambda = 1e-3 (1 / T + trace(C_SS) / |S|)
//   v = C_yy - 2 b^T C_Sy + b^T C_SS b            variance that is left
//   e_i = sqrt(v ((C_SS + lambda I)^-1)_ii / T)   standard error of b_i
#ifndef MSRL_CORE_RIDGE_H_
#define MSRL_CORE_RIDGE_H_

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "msrl/core/segment_matrix.h"

namespace msrl {

// Means and covariances of all channels. `Max` bounds the lift's m so that nothing is allocated;
// Eigen::Dynamic: any m.
template <int Max>
struct ChannelMoments {
  using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, Eigen::ColMajor, Max, 1>;
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, Max, Max>;

  // T >= 1 transitions.
  explicit ChannelMoments(const SegmentMatrix& z)
      : horizon(z.HorizonEntry()), mean(z.dim()), covariance(z.dim(), z.dim()) {
    const Index m = z.dim();
    const double* packed = z.packed().data();
    for (Index j = 0; j < m; ++j) {
      for (Index i = 0; i <= j; ++i) covariance(i, j) = *packed++ / horizon;
    }
    mean = covariance.col(m - 1);
    for (Index j = 0; j < m; ++j) {
      for (Index i = 0; i <= j; ++i) {
        covariance(i, j) -= mean[i] * mean[j];
        covariance(j, i) = covariance(i, j);
      }
    }
  }

  double horizon;
  Vector mean;
  Matrix covariance;
};

template <int Max>
class Ridge {
 public:
  using Moments = ChannelMoments<Max>;
  using Vector = typename Moments::Vector;
  using Matrix = typename Moments::Matrix;
  static constexpr double kPrior = 1e-3;

  // Channels `on` (at least one) by their offsets in the lift.
  Ridge(const Moments& moments, std::span<const int> on, int of)
      : moments_(moments), on_(on), of_(of) {
    const auto n = static_cast<Index>(on.size());
    Matrix a(n, n);
    Vector right(n);
    double trace = 0.0;
    for (Index j = 0; j < n; ++j) {
      right[j] = moments.covariance(At(j), of);
      trace += moments.covariance(At(j), At(j));
      for (Index i = 0; i < n; ++i) a(i, j) = moments.covariance(At(i), At(j));
    }
    const double lambda = kPrior * (1.0 / moments.horizon + trace / static_cast<double>(n));
    slope_ = right;
    // b^T C b = b^T (c - lambda b)
    a.diagonal().array() += lambda;
    inverse_.compute(a);
    inverse_.solveInPlace(slope_);
    variance_ = std::max(
        0.0, moments.covariance(of, of) - slope_.dot(right) - lambda * slope_.squaredNorm());
  }

  Index size() const { return slope_.size(); }
  const Vector& slope() const { return slope_; }
  double variance() const { return variance_; }
  double Intercept() const {
    double value = moments_.mean[of_];
    for (Index i = 0; i < size(); ++i) value -= slope_[i] * moments_.mean[At(i)];
    return value;
  }
  double Error(Index i) const {
    Vector unit = Vector::Zero(size());
    unit[i] = 1.0;
    inverse_.solveInPlace(unit);
    return std::sqrt(variance_ * std::max(0.0, unit[i]) / moments_.horizon);
  }
  // The share of y's variance that the channels explain; 0 if y does not vary.
  double Explained() const {
    const double all = moments_.covariance(of_, of_);
    return all > 0.0 ? std::clamp(1.0 - variance_ / all, 0.0, 1.0) : 0.0;
  }

  // Derivatives of a function of b and v with respect to covariances and horizon are added to
  // these; `d_covariance` is for every entry of the symmetric matrix on its own.
  void PullBack(const Vector& d_slope, double d_variance, Matrix& d_covariance,
                double& d_horizon) const {
    const Index n = size();
    Vector u = d_slope;
    if (variance_ > 0.0) {
      // v as a function of b, c and C with b held, and of b
      for (Index j = 0; j < n; ++j) {
        double residual = -moments_.covariance(At(j), of_);
        for (Index i = 0; i < n; ++i) {
          residual += moments_.covariance(At(j), At(i)) * slope_[i];
          d_covariance(At(i), At(j)) += d_variance * slope_[i] * slope_[j];
        }
        u[j] += 2.0 * d_variance * residual;
        AddPair(At(j), of_, -2.0 * d_variance * slope_[j], d_covariance);
      }
      d_covariance(of_, of_) += d_variance;
    }
    inverse_.solveInPlace(u);
    const double d_lambda = -u.dot(slope_);
    for (Index j = 0; j < n; ++j) {
      AddPair(At(j), of_, u[j], d_covariance);
      for (Index i = 0; i < n; ++i) {
        d_covariance(At(i), At(j)) -= 0.5 * (u[i] * slope_[j] + slope_[i] * u[j]);
      }
      d_covariance(At(j), At(j)) += kPrior * d_lambda / static_cast<double>(n);
    }
    d_horizon -= kPrior * d_lambda / (moments_.horizon * moments_.horizon);
  }

  // The same for a function of Error(i) alone; what goes through v is added to `d_variance`.
  void PullErrorBack(Index i, double d_error, double& d_variance, Matrix& d_covariance,
                     double& d_horizon) const {
    Vector w = Vector::Zero(size());
    w[i] = 1.0;
    inverse_.solveInPlace(w);
    const double error = Error(i);
    if (error == 0.0) return;
    const double d_square = d_error / (2.0 * error);  // with respect to v w_i / T
    d_variance += d_square * w[i] / moments_.horizon;
    d_horizon -= d_square * error * error / moments_.horizon;
    const double d_inverse = d_square * variance_ / moments_.horizon;
    const double d_lambda = -d_inverse * w.squaredNorm();
    for (Index k = 0; k < size(); ++k) {
      for (Index j = 0; j < size(); ++j) d_covariance(At(j), At(k)) -= d_inverse * w[j] * w[k];
      d_covariance(At(k), At(k)) += kPrior * d_lambda / static_cast<double>(size());
    }
    d_horizon -= kPrior * d_lambda / (moments_.horizon * moments_.horizon);
  }

 private:
  Index At(Index i) const { return on_[static_cast<std::size_t>(i)]; }
  static void AddPair(Index i, Index j, double value, Matrix& out) {
    out(i, j) += 0.5 * value;
    out(j, i) += 0.5 * value;
  }

  const Moments& moments_;
  std::span<const int> on_;
  int of_;
  Eigen::LLT<Matrix> inverse_;
  Vector slope_;
  double variance_ = 0.0;
};

// One of the regressions that people ask for, with names.
struct ChannelRegression {
  struct Term {
    std::string channel;
    double slope = 0.0;
    double error = 0.0;
  };
  std::string of;
  double intercept = 0.0;
  double explained = 0.0;  // share of the variance
  std::vector<Term> terms;
};

// The reward on state, action and effort, and every displacement on the actions, as far as a
// compact lift has these channels and they vary. Empty below two transitions. UserError on the full
// lift.
std::vector<ChannelRegression> Regressions(const SegmentMatrix& z);

}  // namespace msrl

#endif  // MSRL_CORE_RIDGE_H_
