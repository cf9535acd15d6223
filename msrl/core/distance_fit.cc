#include "msrl/core/distance_fit.h"

#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/core/packed_kernels.h"

namespace msrl {
namespace {

constexpr double kPrior = 1e-6;
constexpr double kTiny = 1e-12;   // keeps channels that don't vary from dividing by zero
constexpr double kLeast = 1e-10;  // a variance of r^2 below which nothing is explained
constexpr double kSoft = 1e-10;   // keeps goals of rewards without a slope finite

// The moments' channels (x', p, er, ee, rr, 1) from those of the lift, as they come there.
Eigen::Matrix<double, 7, 9> Ends() {
  Eigen::Matrix<double, 7, 9> ends = Eigen::Matrix<double, 7, 9>::Zero();
  for (int i = 0; i < 2; ++i) ends(i, i) = ends(i, 2 + i) = 1.0;
  constexpr int kPlace[] = {4, 3, 5, 2, 6};  // of ee, er, rr, p, 1
  for (int k = 0; k < 5; ++k) ends(kPlace[k], 4 + k) = 1.0;
  return ends;
}

}  // namespace

DistanceFit::DistanceFit(const SegmentMatrix& z) : horizon_(z.HorizonEntry()) {
  const Lift& lift = *z.lift();
  if (lift.kind() != LiftKind::kCompactSquares) {
    throw UserError(
        StrCat("a distance is told by the lift compact-squares, got ", lift.Describe()));
  }
  const Index d = lift.d();
  const Index squares = 2 * d + lift.q() + 1;  // ee, er, rr, p
  channel_ << 0, 1, d, d + 1, squares, squares + 1, squares + 2, squares + 3,
      lift.constant_offset();
  Eigen::Matrix<double, kChannels, kChannels> sums;
  const double* const packed = z.packed().data();
  for (int j = 0; j < kChannels; ++j) {
    for (int i = 0; i < kChannels; ++i) {
      sums(i, j) = packed[internal::PackedIndex(channel_[i], channel_[j])];
    }
  }
  const auto ends = Ends();
  moments_ = ends * sums * ends.transpose() / horizon_;
  const auto mean = moments_.col(kSize + 1).head<kSize + 1>();
  covariance_ = moments_.topLeftCorner<kSize + 1, kSize + 1>() - mean * mean.transpose();
  const Moments centring = Centring();
  centred_ = centring * covariance_ * centring.transpose();
  Square a = centred_.topLeftCorner<kSize, kSize>();
  a.diagonal().array() += kPrior * a.diagonal().array() + kTiny;
  inverse_.compute(a);
  b_ = inverse_.solve(centred_.col(kSize).head<kSize>());
}

DistanceFit::Moments DistanceFit::Centring() const {
  Moments centring = Moments::Identity();
  for (int i = 0; i < 2; ++i) centring(2, i) = -2.0 * moments_(i, kSize + 1);
  return centring;
}

Eigen::Vector2d DistanceFit::Goal() const {
  const double factor = 0.5 * b_[2] / (b_[2] * b_[2] + kSoft);
  return moments_.col(kSize + 1).head<2>() - factor * b_.head<2>();
}

Eigen::Vector3d DistanceFit::Told() const {
  Eigen::Vector3d told;
  for (int i = 0; i < 3; ++i) {
    told[i] = 1.0 - kPrior * centred_(i, i) * inverse_.solve(Vector::Unit(i))[i];
  }
  return told;
}

double DistanceFit::Left() const {
  const Vector c = centred_.col(kSize).head<kSize>();
  const double left = centred_(kSize, kSize) - 2.0 * b_.dot(c) +
                      b_.dot(centred_.topLeftCorner<kSize, kSize>() * b_);
  return std::max(0.0, left);
}

double DistanceFit::Unexplained() const {
  return (Left() + kLeast) / (centred_(kSize, kSize) + kLeast);
}

void DistanceFit::PullBack(const Eigen::Vector2d& d_goal, double d_steepness,
                           const Eigen::Vector3d& d_told, double d_unexplained,
                           double* d_packed) const {
  const Square k = centred_.topLeftCorner<kSize, kSize>();
  Eigen::Matrix<double, kSize + 1, 1> d_mean = Eigen::Matrix<double, kSize + 1, 1>::Zero();
  Vector d_b = Vector::Zero();
  Square d_a = Square::Zero();
  Moments d_centred = Moments::Zero();

  const double square = b_[2] * b_[2] + kSoft;
  d_mean.head<2>() += d_goal;
  d_b.head<2>() -= 0.5 * b_[2] / square * d_goal;
  d_b[2] +=
      d_steepness - 0.5 * (kSoft - b_[2] * b_[2]) / (square * square) * d_goal.dot(b_.head<2>());
  for (int i = 0; i < 3; ++i) {
    const Vector w = inverse_.solve(Vector::Unit(i));
    d_a += kPrior * k(i, i) * d_told[i] * w * w.transpose();
    d_centred(i, i) -= kPrior * w[i] * d_told[i];
  }
  const double left = Left();
  if (left > 0.0) {
    const double all = centred_(kSize, kSize) + kLeast;
    const double d_left = d_unexplained / all;
    d_centred(kSize, kSize) += d_left * (1.0 - (left + kLeast) / all);
    d_centred.col(kSize).head<kSize>() -= d_left * b_;
    d_centred.row(kSize).head<kSize>() -= d_left * b_.transpose();
    d_centred.topLeftCorner<kSize, kSize>() += d_left * b_ * b_.transpose();
    d_b += 2.0 * d_left * (k * b_ - centred_.col(kSize).head<kSize>());
  }
  const Vector u = inverse_.solve(d_b);
  d_centred.col(kSize).head<kSize>() += 0.5 * u;
  d_centred.row(kSize).head<kSize>() += 0.5 * u.transpose();
  d_a -= 0.5 * (u * b_.transpose() + b_ * u.transpose());
  d_a.diagonal() *= 1.0 + kPrior;
  d_centred.topLeftCorner<kSize, kSize>() += d_a;

  const Moments centring = Centring();
  const Moments d_covariance = centring.transpose() * d_centred * centring;
  const Moments d_centring = 2.0 * d_centred * centring * covariance_;
  for (int i = 0; i < 2; ++i) d_mean[i] -= 2.0 * d_centring(2, i);
  d_mean -= 2.0 * d_covariance * moments_.col(kSize + 1).head<kSize + 1>();

  Eigen::Matrix<double, kSize + 2, kSize + 2> d_moments =
      Eigen::Matrix<double, kSize + 2, kSize + 2>::Zero();
  d_moments.topLeftCorner<kSize + 1, kSize + 1>() = d_covariance;
  d_moments.col(kSize + 1).head<kSize + 1>() = 0.5 * d_mean;
  d_moments.row(kSize + 1).head<kSize + 1>() = 0.5 * d_mean.transpose();
  const auto ends = Ends();
  Eigen::Matrix<double, kChannels, kChannels> d_sums =
      ends.transpose() * d_moments * ends / horizon_;
  d_sums(kChannels - 1, kChannels - 1) -= d_moments.cwiseProduct(moments_).sum() / horizon_;
  for (int j = 0; j < kChannels; ++j) {
    for (int i = 0; i <= j; ++i) {
      d_packed[internal::PackedIndex(channel_[i], channel_[j])] +=
          (i == j ? 1.0 : 2.0) * d_sums(i, j);
    }
  }
}

}  // namespace msrl
