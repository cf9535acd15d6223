#include "msrl/nn/squashed_gaussian.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "msrl/core/check.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"

namespace msrl {
namespace {

using internal::ActiveKernels;

// The parts of the buffer.
enum {
  kLogStd,       // log sigma
  kLogStdSlope,  // d log sigma / d x
  kSpread,       // sigma * noise
  kAction,       // tanh(u)
  kFold,         // scratch: |u|, then log(1 + exp(-2|u|))
  kPartCount
};

}  // namespace

SquashedGaussian::SquashedGaussian(int actions, int max_batch, const LogStdOptions& options)
    : actions_(actions), max_batch_(max_batch), options_(options) {
  MSRL_CHECK_GE(actions, 1);
  MSRL_CHECK_GE(max_batch, 1);
  if (!(options.low < options.high)) {
    throw UserError(StrCat("log standard deviation: low is ", options.low, ", high is ",
                           options.high, "; low must be less"));
  }
  part_ = static_cast<std::size_t>(actions) * max_batch;
  buffer_.resize(part_ * kPartCount);
}

void SquashedGaussian::Sample(const ConstMatrixRef& head, const ConstMatrixRef& noise,
                              MatrixRef action, std::span<float> log_prob) {
  const internal::FlushDenormals flush;
  const Eigen::Index batch = head.cols();
  MSRL_CHECK(head.rows() == 2 * actions_ && batch <= max_batch_, "head is ", head.rows(), " x ",
             batch, ", made for ", 2 * actions_, " x ", max_batch_);
  MSRL_CHECK(noise.rows() == actions_ && noise.cols() == batch, "noise is ", noise.rows(), " x ",
             noise.cols());
  MSRL_CHECK(action.rows() == actions_ && action.cols() == batch, "action is ", action.rows(),
             " x ", action.cols());
  MSRL_CHECK_EQ(static_cast<Eigen::Index>(log_prob.size()), batch);
  batch_ = static_cast<int>(batch);
  const auto size = static_cast<std::size_t>(actions_ * batch);

  using MatrixMap = Eigen::Map<Eigen::ArrayXXf>;
  const auto part = [this, batch](int k) { return MatrixMap(Part(k), actions_, batch); };
  MatrixMap log_std = part(kLogStd);
  MatrixMap slope = part(kLogStdSlope);
  MatrixMap spread = part(kSpread);
  MatrixMap tanh_u = part(kAction);
  MatrixMap fold = part(kFold);
  const auto low = static_cast<float>(options_.low);
  const auto high = static_cast<float>(options_.high);
  const auto x = head.bottomRows(actions_).array();
  if (options_.kind == LogStdKind::kClamp) {
    log_std = x.max(low).min(high);
    slope = (x >= low && x <= high).cast<float>();
  } else {
    log_std = x;
    ActiveKernels().tanh(Part(kLogStd), Part(kLogStd), size);
    slope = 0.5F * (high - low) * (1.0F - log_std.square());
    log_std = low + 0.5F * (high - low) * (log_std + 1.0F);
  }
  ActiveKernels().exp(Part(kLogStd), Part(kSpread), size);
  spread *= noise.array();
  tanh_u = head.topRows(actions_).array() + spread;
  fold = tanh_u.abs();
  ActiveKernels().tanh(Part(kAction), Part(kAction), size);
  action = tanh_u.matrix();

  // log N(u) - log(1 - tanh^2 u), the noise being the standardised u
  const auto constant =
      static_cast<float>(0.5 * std::log(2.0 * std::numbers::pi) + 2.0 * std::numbers::ln2);
  log_std = -0.5F * noise.array().square() - log_std - constant + 2.0F * fold;
  fold *= -2.0F;
  ActiveKernels().exp(Part(kFold), Part(kFold), size);
  fold += 1.0F;
  ActiveKernels().log(Part(kFold), Part(kFold), size);
  for (Eigen::Index b = 0; b < batch; ++b) {
    log_prob[b] = (log_std.col(b) + 2.0F * fold.col(b)).sum();
  }
}

void SquashedGaussian::Mode(const ConstMatrixRef& head, MatrixRef action) const {
  const internal::FlushDenormals flush;
  MSRL_CHECK_EQ(head.rows(), 2 * actions_);
  MSRL_CHECK(action.rows() == actions_ && action.cols() == head.cols(), "action is ", action.rows(),
             " x ", action.cols());
  for (Eigen::Index b = 0; b < head.cols(); ++b) {
    ActiveKernels().tanh(head.col(b).data(), action.col(b).data(),
                         static_cast<std::size_t>(actions_));
  }
}

void SquashedGaussian::Backward(const ConstMatrixRef& d_action, std::span<const float> d_log_prob,
                                MatrixRef d_head) const {
  const internal::FlushDenormals flush;
  MSRL_CHECK(d_action.rows() == actions_ && d_action.cols() == batch_, "d_action is ",
             d_action.rows(), " x ", d_action.cols());
  MSRL_CHECK(d_head.rows() == 2 * actions_ && d_head.cols() == batch_, "d_head is ", d_head.rows(),
             " x ", d_head.cols());
  MSRL_CHECK_EQ(static_cast<int>(d_log_prob.size()), batch_);
  using MatrixMap = Eigen::Map<const Eigen::ArrayXXf>;
  const MatrixMap slope(Part(kLogStdSlope), actions_, batch_);
  const MatrixMap spread(Part(kSpread), actions_, batch_);
  const MatrixMap tanh_u(Part(kAction), actions_, batch_);
  for (Eigen::Index b = 0; b < batch_; ++b) {
    const float d = d_log_prob[b];
    auto d_mu = d_head.col(b).head(actions_).array();
    d_mu = d_action.col(b).array() * (1.0F - tanh_u.col(b).square()) + 2.0F * d * tanh_u.col(b);
    d_head.col(b).tail(actions_).array() = (d_mu * spread.col(b) - d) * slope.col(b);
  }
}

}  // namespace msrl
