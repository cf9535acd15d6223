#include "msrl/agents/dreamer/rssm.h"

#include <cmath>

#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr float kNormEpsilon = 1e-4F;
constexpr float kUniformShare = 0.01F;
// The deviation of a standard normal number that is redrawn beyond 2, inverted.
constexpr double kTruncation = 1.1368;

LinearParameters AddLinearIn(Parameters& parameters, const std::string& name, int in, int out,
                             Rng& rng, double scale = 1.0) {
  LinearParameters layer;
  layer.weight = parameters.Add(name + ".weight", out, in);
  InitTruncatedNormal(layer.weight, scale * kTruncation / std::sqrt(in), rng);
  layer.bias = parameters.Add(name + ".bias", out, 1);
  return layer;
}

Node NormSilu(StaticGraph& g, Node x, const NormParameters& norm, ParameterUse use) {
  return g.Silu(g.RmsNorm(x, norm, use, kNormEpsilon));
}

}  // namespace

DenseLayer AddDense(Parameters& parameters, const std::string& name, int in, int out, Rng& rng) {
  DenseLayer layer;
  layer.linear = AddLinearIn(parameters, name, in, out, rng);
  layer.norm = AddNorm(parameters, name + ".norm", out, /*shift=*/false);
  return layer;
}

Node Dense(StaticGraph& g, Node x, const DenseLayer& layer, ParameterUse use) {
  return NormSilu(g, g.Linear(x, layer.linear, use), layer.norm, use);
}

DenseNet AddDenseNet(Parameters& parameters, const std::string& name, const DenseNetShape& shape,
                     Rng& rng) {
  DenseNet net;
  int in = shape.input;
  for (int i = 0; i < shape.layers; ++i) {
    net.layers.push_back(AddDense(parameters, StrCat(name, ".", i), in, shape.width, rng));
    in = shape.width;
  }
  net.output = AddLinearIn(parameters, name + ".output", in, shape.output, rng, shape.output_scale);
  return net;
}

Node ApplyHidden(StaticGraph& g, Node x, const DenseNet& net, ParameterUse use) {
  for (const DenseLayer& layer : net.layers) x = Dense(g, x, layer, use);
  return x;
}

Node Apply(StaticGraph& g, Node x, const DenseNet& net, ParameterUse use) {
  return g.Linear(ApplyHidden(g, x, net, use), net.output, use);
}

void RequireConsistent(const WorldShape& shape) {
  if (shape.deter % shape.blocks == 0) return;
  throw UserError(
      StrCat("setting 'blocks' must divide 'deter', got ", shape.blocks, " and ", shape.deter));
}

Node MixedSoftmax(StaticGraph& g, Node logits, int classes) {
  return g.Affine(g.Softmax(logits, classes), 1.0F - kUniformShare,
                  kUniformShare / static_cast<float>(classes));
}

Node Divergence(StaticGraph& g, Node p, Node q) {
  return g.SumRows(g.Multiply(p, g.Subtract(g.Log(p), g.Log(q))));
}

Rssm::Rssm(Parameters& parameters, const RssmSizes& sizes, Rng& rng) : sizes_(sizes) {
  MSRL_CHECK_EQ(sizes.deter % sizes.blocks, 0);
  const auto dense = [&](const std::string& name, int in, int out) {
    return AddDense(parameters, name, in, out, rng);
  };
  for (int i = 0; i < sizes.layers; ++i) {
    encoder_.push_back(
        dense(StrCat("encoder.", i), i == 0 ? sizes.observation : sizes.units, sizes.units));
  }
  core_h_ = dense("core.h", sizes.deter, sizes.hidden);
  core_z_ = dense("core.z", sizes.latent(), sizes.hidden);
  core_a_ = dense("core.a", sizes.action, sizes.hidden);
  const int block = sizes.deter / sizes.blocks;
  mix_ = dense("core.mix", 3 * sizes.hidden + block, sizes.deter);
  gates_ = AddLinearIn(parameters, "core.gates", block, 3 * sizes.deter, rng);
  posterior_ = dense("posterior.0", sizes.deter + sizes.units, sizes.hidden);
  posterior_output_ =
      AddLinearIn(parameters, "posterior.output", sizes.hidden, sizes.latent(), rng);
  prior_ = AddDenseNet(
      parameters, "prior",
      {.input = sizes.deter, .layers = 2, .width = sizes.hidden, .output = sizes.latent()}, rng);
}

Node Rssm::Tokens(StaticGraph& g, Node symlog_observation, ParameterUse use, Node added) const {
  Node x = symlog_observation;
  for (const DenseLayer& layer : encoder_) x = Dense(g, x, layer, use);
  if (added.id >= 0) x = g.Add(x, added);
  const Node weight = g.SliceColumns(g.Param(posterior_.linear.weight, use), sizes_.deter, x.rows);
  return g.Linear(x, weight, g.Param(*posterior_.linear.bias, use));
}

Node Rssm::ActionInput(StaticGraph& g, Node action, ParameterUse use) const {
  return Dense(g, action, core_a_, use);
}

Node Rssm::Core(StaticGraph& g, Node h, Node z, Node action_input, ParameterUse use) const {
  const int n = sizes_.deter;
  const int inputs = 3 * sizes_.hidden;
  const Node x = g.ConcatRows({Dense(g, h, core_h_, use), Dense(g, z, core_z_, use), action_input});
  const Node weight = g.Param(mix_.linear.weight, use);
  const Node mix =
      g.Add(g.Linear(x, g.SliceColumns(weight, 0, inputs), g.Param(*mix_.linear.bias, use)),
            g.BlockLinear(h, g.SliceColumns(weight, inputs, n / sizes_.blocks), sizes_.blocks));
  const Node gates = g.BlockLinear(NormSilu(g, mix, mix_.norm, use), g.Param(gates_.weight, use),
                                   g.Param(*gates_.bias, use), sizes_.blocks, /*parts=*/3);
  const Node r = g.Sigmoid(g.SliceRows(gates, 0, n));
  const Node candidate = g.Tanh(g.Multiply(r, g.SliceRows(gates, n, n)));
  const Node u = g.Sigmoid(g.Affine(g.SliceRows(gates, 2 * n, n), 1.0F, -1.0F));
  return g.Add(h, g.Multiply(u, g.Subtract(candidate, h)));
}

Node Rssm::Posterior(StaticGraph& g, Node h, Node tokens, ParameterUse use) const {
  const Node weight = g.SliceColumns(g.Param(posterior_.linear.weight, use), 0, sizes_.deter);
  const Node x = NormSilu(g, g.Add(g.Linear(h, weight), tokens), posterior_.norm, use);
  return MixedSoftmax(g, g.Linear(x, posterior_output_, use), sizes_.classes);
}

Node Rssm::Prior(StaticGraph& g, Node h, ParameterUse use) const {
  return MixedSoftmax(g, Apply(g, h, prior_, use), sizes_.classes);
}

}  // namespace msrl
