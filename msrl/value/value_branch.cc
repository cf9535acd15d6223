#include "msrl/value/value_branch.h"

#include <algorithm>

namespace msrl {

void ValueBranch::Rescale(double factor, double offset) {
  const std::vector<NamedTensor>& tensors = network().tensors();
  const NamedTensor& weight = tensors[tensors.size() - 2];
  const NamedTensor& bias = tensors.back();
  for (float& w : network().parameters().subspan(weight.offset, weight.size())) {
    w = static_cast<float>(factor * w);
  }
  float& b = network().parameters()[bias.offset];
  b = static_cast<float>(factor * b + offset);
}

ValueBranch ValueBranch::WithRestFixed(std::span<const float> rest) const {
  const auto kept = static_cast<std::size_t>(feature_count()) - rest.size();
  ValueBranch result(static_cast<int>(kept), shape(), info());
  const std::span<const float> old = network().parameters();
  const std::span<float> parameters = result.network().parameters();
  // columns of the first weight are inputs; all other tensors have the same size in both
  for (std::size_t k = 0; k < network().tensors().size(); ++k) {
    const NamedTensor& from = network().tensors()[k];
    const NamedTensor& to = result.network().tensors()[k];
    std::copy_n(old.begin() + static_cast<std::ptrdiff_t>(from.offset), to.size(),
                parameters.begin() + static_cast<std::ptrdiff_t>(to.offset));
  }
  const NamedTensor& weight = network().tensors()[0];
  const NamedTensor& bias = result.network().tensors()[1];
  const auto units = static_cast<std::size_t>(weight.rows);
  for (std::size_t j = 0; j < rest.size(); ++j) {
    const float* const column = old.data() + weight.offset + (kept + j) * units;
    for (std::size_t i = 0; i < units; ++i) parameters[bias.offset + i] += rest[j] * column[i];
  }
  result.Silence({active().begin(), active().begin() + static_cast<std::ptrdiff_t>(kept)});
  return result;
}

}  // namespace msrl
