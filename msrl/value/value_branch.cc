#include "msrl/value/value_branch.h"

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

}  // namespace msrl
