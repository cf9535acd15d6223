#include "msrl/agents/uvfa/uvfa.h"

#include <cmath>

namespace msrl {
namespace {

MlpSpec StreamSpec(int input, const UvfaShape& shape) {
  return {.input = input,
          .hidden = {shape.stream_width, shape.stream_width},
          .output = shape.stream_features,
          .layer_norm = true};
}

}  // namespace

Uvfa::Uvfa(const UvfaShape& shape, const ParameterOptions& options, Rng& rng)
    : StepwiseModule(options), shape_(shape) {
  state_ = AddMlp(parameters(), "state", StreamSpec(kStateChannels, shape), rng);
  goal_ = AddMlp(parameters(), "goal", StreamSpec(kGoalChannels, shape), rng);
  bias_ = parameters().Add("bias", 1, 1);
}

ValueModule::Slots Uvfa::ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) {
  Eigen::MatrixXf without_goal = Eigen::MatrixXf::Ones(kStateChannels, 1);
  for (const int slot : kGoalSlots) {
    without_goal(slot, 0) = 0.0F;
    without_goal(kGeometrySize + slot, 0) = 0.0F;
  }
  const Node x =
      g.Multiply(g.SliceRows(windows.channels, 0, kStateChannels), g.Constant(without_goal));
  const Node phi = g.Mlp(x, state_, use);
  const Node psi = g.Mlp(g.SliceRows(windows.channels, kGoalAt, kGoalChannels), goal_, use);
  // divided by the root of the width, so that its scale does not grow with it
  const float unit = 1.0F / std::sqrt(static_cast<float>(shape_.stream_features));
  const Node product = g.Scale(g.SumRows(g.Multiply(phi, psi)), unit);
  return {phi, g.Add(product, g.Param(bias_, use))};
}

void Uvfa::RescaleValue(double factor, double offset) {
  RescaleLinear("goal.layers.2", factor, 0.0);
  bias_.value() = (static_cast<float>(factor) * bias_.value()).array() + static_cast<float>(offset);
}

}  // namespace msrl
