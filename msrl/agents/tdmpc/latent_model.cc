#include "msrl/agents/tdmpc/latent_model.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "msrl/agents/common/networks.h"

namespace msrl {
namespace {

constexpr double kDeviation = 0.02;

}  // namespace

LatentModel::LatentModel(const LatentModelSpec& spec, Rng rng)
    : spec_(spec),
      encoder_({.target = spec.slow_encoder}),
      values_({.target = true}),
      policy_({.adam = {.epsilon = kPolicyAdamEpsilon}}) {
  if (spec.bins > 0) bins_ = TwoHotBins::Symlog(spec.bins, kBinLimit);
  const int latent = latent_size();
  const int outputs = spec.bins > 0 ? spec.bins : 1;
  const auto add = [&](Parameters& owner, const std::string& name, int input, int output,
                       double last_scale, int members = 1) {
    return AddMlp(
        owner, name,
        {.input = input,
         .hidden = HiddenLayers(2, spec.width),
         .output = output,
         .activation = Activation::kMish,
         .layer_norm = true,
         .members = members},
        rng, {.kind = InitKind::kTruncatedNormal, .gain = kDeviation, .last_scale = last_scale});
  };
  encode_ = AddLatent(encoder_, "encoder", spec.observation, {spec.encoder_width}, rng);
  next_ = AddLatent(dynamics_, "dynamics", latent + spec.action, HiddenLayers(2, spec.width), rng);
  reward_ = add(dynamics_, "reward", latent + spec.action, outputs, 0.0);
  if (spec.termination) termination_ = add(dynamics_, "termination", latent, 1, 1.0);
  q_ = add(values_, "q", latent + spec.action, outputs, 0.0, spec.q_count);
  pi_ = add(policy_, "policy", latent, 2 * spec.action, 1.0);
}

LatentModel::Latent LatentModel::AddLatent(Parameters& owner, const std::string& name, int input,
                                           std::vector<int> hidden, Rng& rng) {
  Latent part;
  part.network = AddMlp(owner, name,
                        {.input = input,
                         .hidden = std::move(hidden),
                         .output = latent_size(),
                         .activation = Activation::kMish,
                         .layer_norm = true},
                        rng, {.kind = InitKind::kTruncatedNormal, .gain = kDeviation});
  part.norm = AddNorm(owner, name + ".norm", latent_size());
  return part;
}

std::size_t LatentModel::parameter_count() const {
  return encoder_.size() + dynamics_.size() + values_.size() + policy_.size();
}

Node LatentModel::ToLatent(StaticGraph& graph, Node x, const Latent& part, ParameterUse use) {
  return graph.Softmax(graph.LayerNorm(graph.Mlp(x, part.network, use), part.norm, use), kGroup);
}

Node LatentModel::Encode(StaticGraph& graph, Node observation, ParameterUse use) {
  return ToLatent(graph, observation, encode_, use);
}

Node LatentModel::Next(StaticGraph& graph, Node x, ParameterUse use) {
  return ToLatent(graph, x, next_, use);
}

Node LatentModel::Reward(StaticGraph& graph, Node x, ParameterUse use) {
  return graph.Mlp(x, reward_, use);
}

Node LatentModel::Values(StaticGraph& graph, Node x, ParameterUse use) {
  return graph.Mlp(x, q_, use);
}

Node LatentModel::ValuesOf(StaticGraph& graph, Node x, Node members, ParameterUse use) {
  return graph.MlpMembers(x, q_, members, use);
}

Node LatentModel::Termination(StaticGraph& graph, Node z, ParameterUse use) {
  return graph.Mlp(z, termination_, use);
}

Node LatentModel::Decode(StaticGraph& graph, Node heads) const {
  return bins_ ? graph.TwoHotMean(heads, *bins_) : heads;
}

Node LatentModel::HeadLoss(StaticGraph& graph, Node heads, Node target) const {
  if (bins_) return graph.TwoHotCrossEntropy(heads, target, *bins_);
  return graph.Square(graph.Subtract(heads, target));
}

LatentModel::Choice LatentModel::Act(StaticGraph& graph, Node z, Node noise, ParameterUse use) {
  const Node head = graph.Mlp(z, pi_, use);
  const Node mu = graph.SliceRows(head, 0, spec_.action);
  const auto half = static_cast<float>(0.5 * (kLogStdHigh - kLogStdLow));
  const Node log_std = graph.Affine(graph.Tanh(graph.SliceRows(head, spec_.action, spec_.action)),
                                    half, static_cast<float>(kLogStdLow) + half);
  const Node u = graph.Add(mu, graph.Multiply(graph.Exp(log_std), noise));
  const auto constant = static_cast<float>(0.5 * std::log(2.0 * std::numbers::pi));
  const Node density = graph.Affine(graph.Square(noise), 0.5F, constant);
  return {.action = graph.Tanh(u),
          .entropy = graph.SumRows(graph.Add(log_std, density)),
          .mode = graph.Tanh(mu)};
}

FeedForwardPolicy LatentModel::ExportPolicy() const {
  FeedForwardPolicy policy;
  const MlpFunction& h = *encode_.network.function;
  const MlpFunction& pi = *pi_.function;
  AddLayers(h, encoder_.values().subspan(encode_.network.offset, h.parameter_count()), policy);
  FeedForwardLayer& latent = policy.layers.back();
  latent.norm_scale = encode_.norm.scale.value();
  latent.norm_shift = encode_.norm.shift->value();
  latent.softmax_group = kGroup;
  AddSquashedMode(pi, policy_.values().subspan(pi_.offset, pi.parameter_count()), policy);
  return policy;
}

void LatentModel::Visit(const Archive& state) {
  VisitParameters(state.Child("encoder"), encoder_);
  VisitParameters(state.Child("dynamics"), dynamics_);
  VisitParameters(state.Child("values"), values_);
  VisitParameters(state.Child("policy"), policy_);
}

}  // namespace msrl
