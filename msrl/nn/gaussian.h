// A diagonal Gaussian with a free log standard deviation per dimension: the policy of PPO.
#ifndef MSRL_NN_GAUSSIAN_H_
#define MSRL_NN_GAUSSIAN_H_

#include <span>

#include "msrl/nn/mlp.h"

namespace msrl {

// `mean` is actions x batch, `log_std` has one value per action, log probabilities one per sample.

// action = mean + exp(log_std) * noise.
void GaussianSample(const ConstMatrixRef& mean, std::span<const float> log_std,
                    const ConstMatrixRef& noise, MatrixRef action);

// log p(action), summed over the dimensions.
void GaussianLogProb(const ConstMatrixRef& mean, std::span<const float> log_std,
                     const ConstMatrixRef& action, std::span<float> log_prob);

// Gradients of a loss with d loss / d log_prob = d_log_prob; the action is fixed. Both outputs are
// overwritten; d_log_std is the sum over the batch.
void GaussianLogProbBackward(const ConstMatrixRef& mean, std::span<const float> log_std,
                             const ConstMatrixRef& action, std::span<const float> d_log_prob,
                             MatrixRef d_mean, std::span<float> d_log_std);

// Of one sample, summed over the dimensions. Its gradient is 1 for every log_std.
double GaussianEntropy(std::span<const float> log_std);

}  // namespace msrl

#endif  // MSRL_NN_GAUSSIAN_H_
