#include "msrl/agents/traj2value/traj2value_rnn.h"

namespace msrl {

Traj2ValueRnn::Traj2ValueRnn(const Traj2ValueRnnShape& shape, const ParameterOptions& options,
                             Rng& rng)
    : StepwiseModule(options), shape_(shape) {
  const int width = shape.memory_width;
  token_ = AddLinear(parameters(), "token", kTokenChannels, shape.token_width, rng);
  norm_ = AddNorm(parameters(), "token.norm", shape.token_width);
  memory_ = AddGru(parameters(), "memory", shape.token_width, width, rng);
  // in doubt it remembers
  memory_.hidden.bias->value().middleRows(width, width).array() += 1.0F;
  hidden_ = AddLinear(parameters(), "head", width, shape.head_width, rng);
  value_ = AddLinear(parameters(), "value", shape.head_width, 1, rng);
}

ValueModule::Slots Traj2ValueRnn::ReadAll(StaticGraph& g, const Windows& windows,
                                          ParameterUse use) {
  const Node token = TokensOf(g, windows);
  const Node x = g.Silu(g.LayerNorm(g.Linear(token, token_, use), norm_, use));
  const Node nothing = g.Constant(Eigen::MatrixXf::Zero(shape_.memory_width, windows.count));
  const Node h = g.Gru(x, nothing, memory_, use);
  return {h, g.Linear(g.Silu(g.Linear(h, hidden_, use)), value_, use)};
}

void Traj2ValueRnn::RescaleValue(double factor, double offset) {
  RescaleLinear("value", factor, offset);
}

}  // namespace msrl
