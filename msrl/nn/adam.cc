#include "msrl/nn/adam.h"

#include <cmath>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"
#include "msrl/nn/weight_memory.h"

namespace msrl {

void RequireValid(const AdamOptions& options) {
  const auto require = [](bool valid, std::string_view what, double value) {
    if (!valid) throw UserError(StrCat("Adam: ", what, " is ", value, "; it is out of range"));
  };
  require(options.beta1 >= 0.0 && options.beta1 < 1.0, "beta1", options.beta1);
  require(options.beta2 >= 0.0 && options.beta2 < 1.0, "beta2", options.beta2);
  require(options.epsilon > 0.0, "epsilon", options.epsilon);
  require(options.weight_decay >= 0.0, "weight_decay", options.weight_decay);
  require(options.max_norm >= 0.0, "max_norm", options.max_norm);
}

Adam::Adam(std::size_t parameter_count, const AdamOptions& options) : options_(options) {
  RequireValid(options);
  internal::RequireWeights("the optimiser", parameter_count, 2);
  mean_.resize(parameter_count);
  variance_.resize(parameter_count);
}

void Adam::set_step_count(std::int64_t count) {
  MSRL_CHECK_GE(count, 0);
  step_count_ = count;
}

double Adam::Step(std::span<float> parameters, std::span<const float> gradients,
                  double learning_rate) {
  return DoStep(parameters, gradients, learning_rate, nullptr, 0.0);
}

double Adam::Step(std::span<float> parameters, std::span<const float> gradients,
                  double learning_rate, std::span<float> target, double tau) {
  MSRL_CHECK_EQ(target.size(), parameters.size());
  return DoStep(parameters, gradients, learning_rate, target.data(), tau);
}

double Adam::DoStep(std::span<float> parameters, std::span<const float> gradients,
                    double learning_rate, float* target, double tau) {
  const internal::FlushDenormals flush;
  MSRL_CHECK_EQ(parameters.size(), mean_.size());
  MSRL_CHECK_EQ(gradients.size(), mean_.size());
  ++step_count_;
  const auto t = static_cast<double>(step_count_);
  internal::AdamArgs args;
  args.n = parameters.size();
  args.parameter = parameters.data();
  args.gradient = gradients.data();
  args.mean = mean_.data();
  args.variance = variance_.data();
  args.target = target;
  args.tau = static_cast<float>(tau);
  args.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
  args.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
  args.step = static_cast<float>(learning_rate / (1.0 - std::pow(options_.beta1, t)));
  args.root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t)));
  args.epsilon = static_cast<float>(options_.epsilon);
  args.decay = static_cast<float>(1.0 - learning_rate * options_.weight_decay);
  double norm = 0.0;
  if (options_.max_norm > 0.0) {
    norm = Norm(gradients);
    // the small number is PyTorch's
    const double scale = options_.max_norm / (norm + 1e-6);
    if (scale < 1.0) args.gradient_scale = static_cast<float>(scale);
  }
  internal::ActiveKernels().adam(args);
  return norm;
}

void PolyakUpdate(std::span<float> target, std::span<const float> source, double tau) {
  const internal::FlushDenormals flush;
  MSRL_CHECK_EQ(target.size(), source.size());
  internal::ActiveKernels().polyak(target.data(), source.data(), static_cast<float>(tau),
                                   target.size());
}

double Norm(std::span<const float> values) {
  const internal::FlushDenormals flush;
  return std::sqrt(internal::ActiveKernels().sum_of_squares(values.data(), values.size()));
}

}  // namespace msrl
