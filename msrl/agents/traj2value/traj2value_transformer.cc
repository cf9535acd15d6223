#include "msrl/agents/traj2value/traj2value_transformer.h"

#include <string>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr double kPositionDeviation = 0.02;

}  // namespace

Traj2ValueTransformer::Traj2ValueTransformer(const Traj2ValueTransformerShape& shape,
                                             const ParameterOptions& options, Rng& rng)
    : StepwiseModule(options), shape_(shape) {
  const int width = shape.width();
  token_ = AddLinear(parameters(), "token", kTokenChannels, width, rng);
  position_ =
      AddEmbedding(parameters(), "position", width, kTrainingLength, rng, kPositionDeviation);
  for (int i = 0; i < shape.blocks; ++i) {
    const std::string name = StrCat("blocks.", i);
    Block& block = blocks_.emplace_back();
    block.attention_norm = AddNorm(parameters(), name + ".attention.norm", width);
    block.qkv = AddLinear(parameters(), name + ".attention.qkv", width, 3 * width, rng);
    block.out = AddLinear(parameters(), name + ".attention.out", width, width, rng);
    block.perceptron_norm = AddNorm(parameters(), name + ".perceptron.norm", width);
    block.wide = AddLinear(parameters(), name + ".perceptron.0", width, 4 * width, rng);
    block.narrow = AddLinear(parameters(), name + ".perceptron.1", 4 * width, width, rng);
  }
  norm_ = AddNorm(parameters(), "norm", width);
  hidden_ = AddLinear(parameters(), "head", width, shape.head_width, rng);
  value_ = AddLinear(parameters(), "value", shape.head_width, 1, rng);
}

Node Traj2ValueTransformer::Apply(StaticGraph& g, Node x, const Block& block, int windows,
                                  ParameterUse use) const {
  const int width = shape_.width();
  const Node qkv = g.Linear(g.LayerNorm(x, block.attention_norm, use), block.qkv, use);
  const Node seen = g.Attention(g.SliceRows(qkv, 0, width), g.SliceRows(qkv, width, width),
                                g.SliceRows(qkv, 2 * width, width),
                                {.heads = shape_.heads, .batch = windows, .causal = true});
  x = g.Add(x, g.Linear(seen, block.out, use));
  const Node wide = g.Linear(g.LayerNorm(x, block.perceptron_norm, use), block.wide, use);
  return g.Add(x, g.Linear(g.Silu(wide), block.narrow, use));
}

ValueModule::Slots Traj2ValueTransformer::ReadAll(StaticGraph& g, const Windows& windows,
                                                  ParameterUse use) {
  MSRL_CHECK_EQ(windows.length, kTrainingLength);
  // attention wants the tokens of a window side by side
  const int columns = windows.length * windows.count;
  Eigen::MatrixXf by_window(1, columns);
  Eigen::MatrixXf by_time(1, columns);
  Eigen::MatrixXf place(1, columns);
  for (int w = 0; w < windows.count; ++w) {
    for (int t = 0; t < windows.length; ++t) {
      by_window(0, w * windows.length + t) = static_cast<float>(t * windows.count + w);
      by_time(0, t * windows.count + w) = static_cast<float>(w * windows.length + t);
      place(0, w * windows.length + t) = static_cast<float>(t);
    }
  }
  const Node token = g.GatherColumns(TokensOf(g, windows), g.Constant(by_window));
  Node x = g.Add(g.Linear(token, token_, use),
                 g.GatherColumns(g.Param(position_, use), g.Constant(place)));
  for (const Block& block : blocks_) x = Apply(g, x, block, windows.count, use);
  const Node z = g.GatherColumns(g.LayerNorm(x, norm_, use), g.Constant(by_time));
  return {z, g.Linear(g.Silu(g.Linear(z, hidden_, use)), value_, use)};
}

void Traj2ValueTransformer::RescaleValue(double factor, double offset) {
  RescaleLinear("value", factor, offset);
}

}  // namespace msrl
