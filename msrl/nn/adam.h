// Optimisers over flat buffers: one pass, vectorised, no allocation.
#ifndef MSRL_NN_ADAM_H_
#define MSRL_NN_ADAM_H_

#include <cstdint>
#include <span>

#include "msrl/nn/float_buffer.h"

namespace msrl {

struct AdamOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;  // decoupled (AdamW)
  double max_norm = 0.0;  // gradients with a larger Euclidean norm are scaled down to it; 0: off
};

// UserError unless 0 <= beta < 1, epsilon > 0 and the others >= 0.
void RequireValid(const AdamOptions& options);

// Adam and AdamW, the same formulas as PyTorch's.
class Adam {
 public:
  explicit Adam(std::size_t parameter_count, const AdamOptions& options = {});

  const AdamOptions& options() const { return options_; }

  // Returns the norm of the gradients before clipping, 0 if clipping is off.
  double Step(std::span<float> parameters, std::span<const float> gradients, double learning_rate);
  // The same, and target += tau (parameters - target) in the same pass.
  double Step(std::span<float> parameters, std::span<const float> gradients, double learning_rate,
              std::span<float> target, double tau);

  // Everything that later steps depend on, to be saved and restored.
  std::span<float> mean() { return mean_; }
  std::span<float> variance() { return variance_; }
  std::span<const float> mean() const { return mean_; }
  std::span<const float> variance() const { return variance_; }
  std::int64_t step_count() const { return step_count_; }
  void set_step_count(std::int64_t count);

 private:
  double DoStep(std::span<float> parameters, std::span<const float> gradients, double learning_rate,
                float* target, double tau);

  AdamOptions options_;
  FloatBuffer mean_;
  FloatBuffer variance_;
  std::int64_t step_count_ = 0;
};

// target += tau (source - target).
void PolyakUpdate(std::span<float> target, std::span<const float> source, double tau);

// The Euclidean norm.
double Norm(std::span<const float> values);

}  // namespace msrl

#endif  // MSRL_NN_ADAM_H_
