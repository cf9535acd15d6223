// a = tanh(mu + sigma * noise): the policy of soft actor-critic, with log probabilities and the
// gradients through the sample.
#ifndef MSRL_NN_SQUASHED_GAUSSIAN_H_
#define MSRL_NN_SQUASHED_GAUSSIAN_H_

#include <span>

#include "msrl/nn/float_buffer.h"
#include "msrl/nn/mlp.h"

namespace msrl {

enum class LogStdKind {
  kClamp,  // log sigma = min(max(x, low), high); no gradient beyond
  kTanh,   // log sigma = low + (high - low) (tanh(x) + 1) / 2
};

struct LogStdOptions {
  LogStdKind kind = LogStdKind::kClamp;
  double low = -20.0;
  double high = 2.0;
};

// The head is 2 * actions rows x batch: mu above, x (of log sigma) below. Keeps what the backward
// pass needs; allocates in the constructor only.
class SquashedGaussian {
 public:
  SquashedGaussian(int actions, int max_batch, const LogStdOptions& options = {});

  int actions() const { return actions_; }

  // Actions in [-1, 1] (actions x batch) and log densities (one per sample) for standard normal
  // noise (actions x batch). log(1 - tanh^2 u) = 2 (log 2 - |u| - log(1 + exp(-2|u|))), which is
  // exact for saturated actions too.
  void Sample(const ConstMatrixRef& head, const ConstMatrixRef& noise, MatrixRef action,
              std::span<float> log_prob);

  // tanh(mu): what an evaluation does.
  void Mode(const ConstMatrixRef& head, MatrixRef action) const;

  // Gradients of a loss with respect to the head, after Sample(), from those with respect to the
  // actions and to the log densities; through the sample, the noise being fixed.
  void Backward(const ConstMatrixRef& d_action, std::span<const float> d_log_prob,
                MatrixRef d_head) const;

 private:
  float* Part(int k) { return buffer_.data() + k * part_; }
  const float* Part(int k) const { return buffer_.data() + k * part_; }

  int actions_;
  int max_batch_;
  int batch_ = 0;
  LogStdOptions options_;
  std::size_t part_;    // floats per part
  FloatBuffer buffer_;  // parts of actions x batch: see the source
};

}  // namespace msrl

#endif  // MSRL_NN_SQUASHED_GAUSSIAN_H_
