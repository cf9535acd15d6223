#include "msrl/agents/ppo/policy_head.h"

#include <algorithm>
#include <cmath>

namespace msrl {
namespace {

// log sum_a exp(logit_a) of a column.
float LogSum(const ConstMatrixRef& logits, Eigen::Index b) {
  const float largest = logits.col(b).maxCoeff();
  return largest + std::log((logits.col(b).array() - largest).exp().sum());
}

Eigen::Index IndexOf(const ConstMatrixRef& action, Eigen::Index b) {
  return static_cast<Eigen::Index>(action(0, b));
}

// -sum_a p_a log p_a of a column.
double ColumnEntropy(const ConstMatrixRef& logits, Eigen::Index b) {
  const float log_sum = LogSum(logits, b);
  double entropy = 0.0;
  for (Eigen::Index a = 0; a < logits.rows(); ++a) {
    const double log_p = logits(a, b) - log_sum;
    entropy -= std::exp(log_p) * log_p;
  }
  return entropy;
}

}  // namespace

void PolicyHead::Sample(const ConstMatrixRef& head, std::span<const float> log_std, Rng& rng,
                        MatrixRef action) const {
  for (Eigen::Index b = 0; b < head.cols(); ++b) {
    if (!is_discrete_) {
      for (Eigen::Index a = 0; a < head.rows(); ++a) {
        const double spread = std::exp(static_cast<double>(log_std[static_cast<std::size_t>(a)]));
        action(a, b) = static_cast<float>(head(a, b) + spread * rng.Normal());
      }
      continue;
    }
    // the first index at which the summed probability passes a uniform number
    const float log_sum = LogSum(head, b);
    double left = rng.Uniform();
    Eigen::Index chosen = 0;
    for (; chosen + 1 < head.rows(); ++chosen) {
      left -= std::exp(static_cast<double>(head(chosen, b) - log_sum));
      if (left < 0.0) break;
    }
    action(0, b) = static_cast<float>(chosen);
  }
}

void PolicyHead::Mode(const ConstMatrixRef& head, MatrixRef action) const {
  if (!is_discrete_) {
    action = head;
    return;
  }
  for (Eigen::Index b = 0; b < head.cols(); ++b) {
    Eigen::Index best = 0;
    head.col(b).maxCoeff(&best);
    action(0, b) = static_cast<float>(best);
  }
}

void PolicyHead::LogProb(const ConstMatrixRef& head, std::span<const float> log_std,
                         const ConstMatrixRef& action, std::span<float> log_prob) const {
  if (!is_discrete_) {
    GaussianLogProb(head, log_std, action, log_prob);
    return;
  }
  for (Eigen::Index b = 0; b < head.cols(); ++b) {
    log_prob[static_cast<std::size_t>(b)] = head(IndexOf(action, b), b) - LogSum(head, b);
  }
}

double PolicyHead::Entropy(const ConstMatrixRef& head, std::span<const float> log_std) const {
  if (!is_discrete_) return GaussianEntropy(log_std);
  double sum = 0.0;
  for (Eigen::Index b = 0; b < head.cols(); ++b) sum += ColumnEntropy(head, b);
  return sum / static_cast<double>(head.cols());
}

void PolicyHead::Backward(const ConstMatrixRef& head, std::span<const float> log_std,
                          const ConstMatrixRef& action, std::span<const float> d_log_prob,
                          double entropy_weight, MatrixRef d_head,
                          std::span<float> d_log_std) const {
  if (!is_discrete_) {
    GaussianLogProbBackward(head, log_std, action, d_log_prob, d_head, d_log_std);
    for (float& d : d_log_std) d -= static_cast<float>(entropy_weight);
    return;
  }
  const double batch = static_cast<double>(head.cols());
  for (Eigen::Index b = 0; b < head.cols(); ++b) {
    const float log_sum = LogSum(head, b);
    const double entropy = ColumnEntropy(head, b);
    const double d = d_log_prob[static_cast<std::size_t>(b)];
    for (Eigen::Index a = 0; a < head.rows(); ++a) {
      const double log_p = head(a, b) - log_sum;
      const double p = std::exp(log_p);
      const double one = a == IndexOf(action, b) ? 1.0 : 0.0;
      // d log p(chosen) / d logit = 1[chosen] - p;  dH / d logit = -p (log p + H)
      d_head(a, b) =
          static_cast<float>(d * (one - p) + entropy_weight / batch * p * (log_p + entropy));
    }
  }
}

}  // namespace msrl
