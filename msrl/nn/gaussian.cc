#include "msrl/nn/gaussian.h"

#include <cmath>
#include <numbers>

#include "msrl/core/check.h"
#include "msrl/nn/runtime.h"

namespace msrl {
namespace {

const double kHalfLogTwoPi = 0.5 * std::log(2.0 * std::numbers::pi);

void CheckShapes(const ConstMatrixRef& mean, std::span<const float> log_std, Eigen::Index rows,
                 Eigen::Index columns) {
  MSRL_CHECK_EQ(mean.rows(), static_cast<Eigen::Index>(log_std.size()));
  MSRL_CHECK_EQ(rows, mean.rows());
  MSRL_CHECK_EQ(columns, mean.cols());
}

}  // namespace

void GaussianSample(const ConstMatrixRef& mean, std::span<const float> log_std,
                    const ConstMatrixRef& noise, MatrixRef action) {
  const internal::FlushDenormals flush;
  CheckShapes(mean, log_std, noise.rows(), noise.cols());
  CheckShapes(mean, log_std, action.rows(), action.cols());
  for (Eigen::Index i = 0; i < mean.rows(); ++i) {
    action.row(i) = mean.row(i) + std::exp(log_std[i]) * noise.row(i);
  }
}

void GaussianLogProb(const ConstMatrixRef& mean, std::span<const float> log_std,
                     const ConstMatrixRef& action, std::span<float> log_prob) {
  const internal::FlushDenormals flush;
  CheckShapes(mean, log_std, action.rows(), static_cast<Eigen::Index>(log_prob.size()));
  Eigen::Map<Eigen::RowVectorXf> sum(log_prob.data(), mean.cols());
  double constant = 0.0;
  for (const float value : log_std) constant -= value + kHalfLogTwoPi;
  sum.setConstant(static_cast<float>(constant));
  for (Eigen::Index i = 0; i < mean.rows(); ++i) {
    const float inverse = std::exp(-log_std[i]);
    sum.array() -= 0.5F * ((action.row(i) - mean.row(i)).array() * inverse).square();
  }
}

void GaussianLogProbBackward(const ConstMatrixRef& mean, std::span<const float> log_std,
                             const ConstMatrixRef& action, std::span<const float> d_log_prob,
                             MatrixRef d_mean, std::span<float> d_log_std) {
  const internal::FlushDenormals flush;
  CheckShapes(mean, log_std, action.rows(), static_cast<Eigen::Index>(d_log_prob.size()));
  CheckShapes(mean, log_std, d_mean.rows(), d_mean.cols());
  MSRL_CHECK_EQ(d_log_std.size(), log_std.size());
  for (Eigen::Index i = 0; i < mean.rows(); ++i) {
    const float inverse = std::exp(-log_std[i]);
    double total = 0.0;
    for (Eigen::Index b = 0; b < mean.cols(); ++b) {
      const float z = (action(i, b) - mean(i, b)) * inverse;
      d_mean(i, b) = d_log_prob[b] * z * inverse;
      total += d_log_prob[b] * (z * z - 1.0F);
    }
    d_log_std[i] = static_cast<float>(total);
  }
}

double GaussianEntropy(std::span<const float> log_std) {
  double entropy = 0.0;
  for (const float value : log_std) entropy += value + 0.5 + kHalfLogTwoPi;
  return entropy;
}

}  // namespace msrl
