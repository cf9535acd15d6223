#include "msrl/nn/laprop.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "msrl/core/check.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/kernels.h"
#include "msrl/nn/runtime.h"

namespace msrl {

void RequireValid(const LaPropOptions& options) {
  const auto require = [](bool valid, std::string_view what, double value) {
    if (!valid) throw UserError(StrCat("LaProp: ", what, " is ", value, "; it is out of range"));
  };
  require(options.beta1 >= 0.0 && options.beta1 < 1.0, "beta1", options.beta1);
  require(options.beta2 >= 0.0 && options.beta2 < 1.0, "beta2", options.beta2);
  require(options.epsilon > 0.0, "epsilon", options.epsilon);
  require(options.clip >= 0.0, "clip", options.clip);
  require(options.smallest_norm > 0.0, "smallest_norm", options.smallest_norm);
}

LaProp::LaProp(std::span<const NamedTensor> tensors, const LaPropOptions& options)
    : options_(options) {
  RequireValid(options);
  std::size_t total = 0;
  for (const NamedTensor& tensor : tensors) {
    MSRL_CHECK_EQ(tensor.offset, total);
    sizes_.push_back(tensor.size());
    total += tensor.size();
  }
  mean_.resize(total);
  variance_.resize(total);
}

void LaProp::set_step_count(std::int64_t count) {
  MSRL_CHECK_GE(count, 0);
  step_count_ = count;
}

void LaProp::Step(std::span<float> parameters, std::span<const float> gradients,
                  double learning_rate) {
  const internal::FlushDenormals flush;
  MSRL_CHECK_EQ(parameters.size(), mean_.size());
  MSRL_CHECK_EQ(gradients.size(), mean_.size());
  ++step_count_;
  const auto t = static_cast<double>(step_count_);
  internal::LaPropArgs args;
  args.parameter = parameters.data();
  args.gradient = gradients.data();
  args.mean = mean_.data();
  args.variance = variance_.data();
  args.one_minus_beta1 = static_cast<float>(1.0 - options_.beta1);
  args.one_minus_beta2 = static_cast<float>(1.0 - options_.beta2);
  args.step = static_cast<float>(learning_rate / (1.0 - std::pow(options_.beta1, t)));
  args.root_scale = static_cast<float>(1.0 / std::sqrt(1.0 - std::pow(options_.beta2, t)));
  args.epsilon = static_cast<float>(options_.epsilon);
  for (const std::size_t size : sizes_) {
    args.n = size;
    args.gradient_scale = 1.0F;
    if (options_.clip > 0.0) {
      const double most =
          options_.clip * std::max(options_.smallest_norm, Norm({args.parameter, size}));
      args.gradient_scale =
          static_cast<float>(1.0 / std::max(1.0, Norm({args.gradient, size}) / most));
    }
    internal::ActiveKernels().laprop(args);
    args.parameter += size;
    args.gradient += size;
    args.mean += size;
    args.variance += size;
  }
}

}  // namespace msrl
