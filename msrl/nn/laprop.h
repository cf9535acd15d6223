// LaProp (Ziyin et al. 2020) behind adaptive gradient clipping (Brock et al. 2021): the optimiser
// of DreamerV3. Gradients are first divided by their root mean square and then averaged, so that a
// sudden large gradient moves no parameter far.
#ifndef MSRL_NN_LAPROP_H_
#define MSRL_NN_LAPROP_H_

#include <cstdint>
#include <span>
#include <vector>

#include "msrl/nn/float_buffer.h"
#include "msrl/nn/mlp.h"

namespace msrl {

struct LaPropOptions {
  double beta1 = 0.9;    // of the mean of scaled gradients
  double beta2 = 0.999;  // of their mean square
  double epsilon = 1e-20;
  // A tensor's gradient is scaled down to clip * max(smallest_norm, norm of the tensor); 0: off.
  double clip = 0.3;
  double smallest_norm = 1e-3;
};

// UserError unless 0 <= beta < 1, epsilon and smallest_norm > 0 and clip >= 0.
void RequireValid(const LaPropOptions& options);

// Over a flat buffer like Adam, tensor by tensor:
//   g <- g / max(1, |g| / (clip max(smallest_norm, |w|)))
//   v <- beta2 v + (1 - beta2) g^2,   u = g / (sqrt(v / (1 - beta2^t)) + epsilon)
//   m <- beta1 m + (1 - beta1) u,     w <- w - learning rate * m / (1 - beta1^t)
// Where v is too small for a normal float, u is 0.
class LaProp {
 public:
  // Tensors that lie one after the other.
  explicit LaProp(std::span<const NamedTensor> tensors, const LaPropOptions& options = {});

  const LaPropOptions& options() const { return options_; }

  void Step(std::span<float> parameters, std::span<const float> gradients, double learning_rate);

  // Everything that later steps depend on, to be saved and restored.
  std::span<float> mean() { return mean_; }
  std::span<float> variance() { return variance_; }
  std::span<const float> mean() const { return mean_; }
  std::span<const float> variance() const { return variance_; }
  std::int64_t step_count() const { return step_count_; }
  void set_step_count(std::int64_t count);

 private:
  LaPropOptions options_;
  std::vector<std::size_t> sizes_;
  FloatBuffer mean_;
  FloatBuffer variance_;
  std::int64_t step_count_ = 0;
};

}  // namespace msrl

#endif  // MSRL_NN_LAPROP_H_
