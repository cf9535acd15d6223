#include "msrl/agents/common/networks.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

Shape ShapeOf(const NamedTensor& tensor) {
  if (tensor.columns == 1) return {tensor.rows};
  return {tensor.columns, tensor.rows};
}

}  // namespace

void VisitNetwork(const Archive& state, Mlp& network) {
  for (const NamedTensor& tensor : network.tensors()) {
    state.Array(tensor.name, network.parameters().subspan(tensor.offset, tensor.size()),
                ShapeOf(tensor));
  }
}

void VisitAdam(const Archive& state, Adam& adam) {
  state.Array("mean", adam.mean());
  state.Array("variance", adam.variance());
  std::int64_t steps = adam.step_count();
  state.Int("steps", steps);
  if (state.loading()) adam.set_step_count(steps);
}

void RequireFiniteGradients(std::string_view network, std::span<const float> gradients) {
  if (std::isfinite(Norm(gradients))) [[likely]]
    return;
  RequireFinite(StrCat(network, " gradient"), gradients);
  throw RunError(StrCat(network, " gradient norm is inf"));
}

}  // namespace msrl
