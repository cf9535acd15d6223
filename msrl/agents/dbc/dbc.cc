#include "msrl/agents/dbc/dbc.h"

namespace msrl {
namespace {

constexpr float kLeastSigma = 1e-4F;
constexpr float kMostSigma = 10.0F;
constexpr float kBisimulationWeight = 0.5F;

}  // namespace

Dbc::Dbc(const DbcShape& shape, const ParameterOptions& options, Rng& rng)
    : StepwiseModule(options), shape_(shape) {
  const int n = shape.latent_size;
  encoder_ = AddMlp(parameters(), "encoder",
                    {.input = kStateChannels,
                     .hidden = {shape.encoder_width, shape.encoder_width},
                     .output = n,
                     .layer_norm = true},
                    rng);
  norm_ = AddNorm(parameters(), "encoder.norm", n);
  transition_ = AddMlp(parameters(), "transition",
                       {.input = n + kActionChannels,
                        .hidden = {shape.model_width},
                        .output = 2 * n,
                        .layer_norm = true},
                       rng);
  reward_ =
      AddMlp(parameters(), "reward",
             {.input = n, .hidden = {shape.model_width}, .output = 1, .layer_norm = true}, rng);
  value_ =
      AddMlp(parameters(), "value", {.input = n, .hidden = {shape.head_width}, .output = 1}, rng);
}

ValueModule::Slots Dbc::ReadAll(StaticGraph& g, const Windows& windows, ParameterUse use) {
  const Node x = g.SliceRows(windows.channels, 0, kStateChannels);
  const Node z = g.LayerNorm(g.Mlp(x, encoder_, use), norm_, use);
  return {z, g.Mlp(z, value_, use)};
}

Node Dbc::Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) {
  const int n = shape_.latent_size;
  const int count = windows.count;
  const int steps = (windows.length - 1) * count;
  constexpr auto kTrained = ParameterUse::kTrained;
  const Slots slots = ReadAll(g, windows, kTrained);
  const Node value_loss = WeightedHuber(g, slots.value, label, weight);

  // a step counts if its successor is in the window, which tells its action and reward
  const Node z = g.SliceColumns(slots.z, 0, steps);
  const Node next_z = g.StopGradient(g.SliceColumns(slots.z, count, steps));
  const Node arrived = g.SliceColumns(windows.channels, count, steps);
  const Node u = g.SliceRows(arrived, kActionAt, kActionChannels);
  const Node r = g.SliceRows(arrived, kRewardAt, 1);
  const Node step_weight = g.SliceColumns(weight, count, steps);
  const auto mean = [&](Node of_step, Node weights) { return g.Sum(g.Multiply(of_step, weights)); };

  // a likelihood of states that can be predicted has gradients without bound: in the encoder they
  // would drown those of the metric
  const Node head = g.Mlp(g.ConcatRows({g.StopGradient(z), u}), transition_, kTrained);
  const Node mu = g.SliceRows(head, 0, n);
  const Node sigma =
      g.Affine(g.Sigmoid(g.SliceRows(head, n, n)), kMostSigma - kLeastSigma, kLeastSigma);
  const Node miss = g.Square(g.Divide(g.Subtract(mu, next_z), sigma));
  const Node model_loss = mean(g.MeanRows(g.Add(g.Scale(miss, 0.5F), g.Log(sigma))), step_weight);
  const Node reward_loss = mean(g.Square(g.Subtract(g.Mlp(mu, reward_, kTrained), r)), step_weight);

  Eigen::MatrixXf partner(1, steps);
  for (int c = 0; c < steps; ++c) partner(0, c) = static_cast<float>(Partner(c, steps, count));
  const Node other = g.Constant(partner);
  const auto difference = [&](Node x) { return g.Subtract(x, g.GatherColumns(x, other)); };
  const Node fixed_mu = g.StopGradient(mu);
  const Node fixed_sigma = g.StopGradient(sigma);
  const Node later =
      g.Sqrt(g.Add(g.Square(difference(fixed_mu)), g.Square(difference(fixed_sigma))));
  const Node wanted =
      g.Add(g.Scale(later, static_cast<float>(shape_.bisimulation_gamma)), g.Abs(difference(r)));
  const Node error = g.Square(g.Subtract(g.Abs(difference(z)), wanted));
  // weights are equal or zero: of a pair, zero if one of both is filling
  const Node pair_weight = g.Sqrt(g.Multiply(step_weight, g.GatherColumns(step_weight, other)));
  const Node bisimulation = mean(g.MeanRows(error), pair_weight);
  return g.Add(g.Add(value_loss, g.Scale(bisimulation, kBisimulationWeight)),
               g.Add(model_loss, reward_loss));
}

void Dbc::RescaleValue(double factor, double offset) {
  RescaleLinear("value.layers.1", factor, offset);
}

}  // namespace msrl
