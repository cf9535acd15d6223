#include "msrl/agents/feed_forward.h"

#include <cstddef>
#include <utility>

namespace msrl {

void AddLayers(const MlpFunction& network, std::span<const float> parameters,
               FeedForwardPolicy& policy) {
  const MlpSpec& spec = network.spec();
  auto tensor = network.tensors().begin();
  const auto take = [&] {
    const NamedTensor& now = *tensor++;
    return Eigen::Map<const Eigen::MatrixXf>(parameters.data() + now.offset, now.rows, now.columns);
  };
  for (std::size_t l = 0; l <= spec.hidden.size(); ++l) {
    const bool last = l == spec.hidden.size();
    FeedForwardLayer layer;
    layer.weight = take();
    layer.bias = take();
    if (spec.layer_norm && !last) {
      layer.norm_scale = take();
      layer.norm_shift = take();
    }
    layer.activation = last ? spec.output_activation : spec.activation;
    policy.layers.push_back(std::move(layer));
  }
}

void AddSquashedMode(const MlpFunction& network, std::span<const float> parameters,
                     FeedForwardPolicy& policy) {
  AddLayers(network, parameters, policy);
  FeedForwardLayer& head = policy.layers.back();
  const Eigen::Index actions = head.bias.size() / 2;
  head.weight.conservativeResize(actions, Eigen::NoChange);
  head.bias.conservativeResize(actions);
  head.activation = Activation::kTanh;
}

}  // namespace msrl
