#include "msrl/agents/common/networks.h"

#include <cmath>
#include <limits>

#include "msrl/core/check.h"

namespace msrl {
namespace {

Shape ShapeOf(const NamedTensor& tensor) {
  if (tensor.columns == 1) return {tensor.rows};
  return {tensor.columns, tensor.rows};
}

Shape Flat(std::span<const float> values) { return {static_cast<std::int64_t>(values.size())}; }

}  // namespace

void SaveNetwork(const StateWriter& state, const Mlp& network) {
  for (const NamedTensor& tensor : network.tensors()) {
    state.View(tensor.name, network.parameters().subspan(tensor.offset, tensor.size()),
               ShapeOf(tensor));
  }
}

void LoadNetwork(const StateReader& state, Mlp& network) {
  for (const NamedTensor& tensor : network.tensors()) {
    state.Into(tensor.name, network.parameters().subspan(tensor.offset, tensor.size()),
               ShapeOf(tensor));
  }
}

void SaveAdam(const StateWriter& state, const Adam& adam) {
  state.View("mean", adam.mean(), Flat(adam.mean()));
  state.View("variance", adam.variance(), Flat(adam.variance()));
  state.Int("steps", adam.step_count());
}

void LoadAdam(const StateReader& state, Adam& adam) {
  state.Into("mean", adam.mean(), Flat(adam.mean()));
  state.Into("variance", adam.variance(), Flat(adam.variance()));
  adam.set_step_count(state.Int("steps", 0, std::numeric_limits<std::int64_t>::max()));
}

void RequireFiniteGradients(std::string_view network, std::span<const float> gradients) {
  if (std::isfinite(Norm(gradients))) [[likely]]
    return;
  RequireFinite(StrCat(network, " gradient"), gradients);
  throw RunError(StrCat(network, " gradient norm is inf"));
}

std::vector<int> HiddenLayers(int layers, int width) {
  if (layers < 0 || layers > 16 || width < 1 || width > 8192) {
    throw UserError(StrCat("hidden_layers must be 0 to 16 and hidden_width 1 to 8192, got ", layers,
                           " and ", width));
  }
  return std::vector<int>(static_cast<std::size_t>(layers), width);
}

}  // namespace msrl
