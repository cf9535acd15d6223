#include "msrl/agents/common/networks.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

Shape ShapeOf(const NamedTensor& tensor) {
  if (tensor.columns == 1) return {tensor.rows};
  return {tensor.columns, tensor.rows};
}

void VisitTensors(const Archive& state, const std::vector<NamedTensor>& tensors,
                  std::span<float> values) {
  for (const NamedTensor& tensor : tensors) {
    state.Array(tensor.name, values.subspan(tensor.offset, tensor.size()), ShapeOf(tensor));
  }
}

template <typename Optimiser>
void VisitMoments(const Archive& state, Optimiser& optimiser) {
  state.Array("mean", optimiser.mean());
  state.Array("variance", optimiser.variance());
  std::int64_t steps = optimiser.step_count();
  state.Int("steps", steps);
  if (state.loading()) optimiser.set_step_count(steps);
}

}  // namespace

void VisitNetwork(const Archive& state, Mlp& network) {
  VisitTensors(state, network.tensors(), network.parameters());
}

void VisitAdam(const Archive& state, Adam& adam) { VisitMoments(state, adam); }

void VisitValues(const Archive& state, Parameters& parameters) {
  VisitTensors(state, parameters.tensors(), parameters.values());
}

void VisitParameters(const Archive& state, Parameters& parameters) {
  VisitValues(state, parameters);
  if (!parameters.target().empty()) {
    VisitTensors(state.Child("target"), parameters.tensors(), parameters.target());
  }
  const Archive optimiser = state.Child("optimiser");
  if (parameters.uses_laprop()) {
    VisitMoments(optimiser, parameters.laprop());
  } else {
    VisitMoments(optimiser, parameters.adam());
  }
}

void CopyTensors(const Parameters& from, Parameters& to,
                 const std::function<bool(const NamedTensor&)>& which) {
  for (const NamedTensor& tensor : from.tensors()) {
    if (!which(tensor)) continue;
    const auto place = std::ranges::find(to.tensors(), tensor.name, &NamedTensor::name);
    MSRL_CHECK(place != to.tensors().end() && place->rows == tensor.rows &&
                   place->columns == tensor.columns,
               "no place for ", tensor.name);
    std::ranges::copy(from.values().subspan(tensor.offset, tensor.size()),
                      to.values().begin() + static_cast<std::ptrdiff_t>(place->offset));
  }
  if (to.finished() && !to.target().empty()) to.CopyToTarget();
}

void RequireFiniteGradients(std::string_view network, std::span<const float> gradients) {
  if (std::isfinite(Norm(gradients))) [[likely]]
    return;
  RequireFinite(StrCat(network, " gradient"), gradients);
  throw RunError(StrCat(network, " gradient norm is inf"));
}

double ClipNorm(std::initializer_list<std::span<float>> parts, double most) {
  double squares = 0.0;
  for (const auto part : parts) squares += Norm(part) * Norm(part);
  const double norm = std::sqrt(squares);
  RequireFinite("gradient norm", std::span(&norm, 1));
  if (norm <= most) return norm;
  for (const auto part : parts) {
    for (float& value : part) value *= static_cast<float>(most / norm);
  }
  return norm;
}

}  // namespace msrl
