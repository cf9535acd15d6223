// What PPO needs of a policy, for Gaussian (continuous) and softmax (discrete) actions.
#ifndef MSRL_AGENTS_PPO_POLICY_HEAD_H_
#define MSRL_AGENTS_PPO_POLICY_HEAD_H_

#include <span>

#include "msrl/env/spec.h"
#include "msrl/nn/gaussian.h"

namespace msrl {

// Heads are what the network puts out: means (actions x batch) or logits (actions x batch). An
// action is a column of the means' size, or one number, the index. Does not allocate after the
// first calls.
class PolicyHead {
 public:
  explicit PolicyHead(const ActionSpec& spec) : is_discrete_(spec.kind == ActionKind::kDiscrete) {}

  void Sample(const ConstMatrixRef& head, std::span<const float> log_std, Rng& rng,
              MatrixRef action) const;
  // The most likely action.
  void Mode(const ConstMatrixRef& head, MatrixRef action) const;
  void LogProb(const ConstMatrixRef& head, std::span<const float> log_std,
               const ConstMatrixRef& action, std::span<float> log_prob) const;
  // Mean over the batch.
  double Entropy(const ConstMatrixRef& head, std::span<const float> log_std) const;
  // Gradients of  sum_b d_log_prob_b log pi(a_b) - entropy_weight * Entropy  with respect to head
  // and log_std; both are overwritten.
  void Backward(const ConstMatrixRef& head, std::span<const float> log_std,
                const ConstMatrixRef& action, std::span<const float> d_log_prob,
                double entropy_weight, MatrixRef d_head, std::span<float> d_log_std) const;

 private:
  bool is_discrete_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_PPO_POLICY_HEAD_H_
