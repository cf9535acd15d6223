#include "msrl/agents/tdmpc/latent_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <utility>

#include "msrl/agents/common/networks.h"

namespace msrl {
namespace {

constexpr double kDeviation = 0.02;

bool Exists(Node node) { return node.id >= 0; }

// Those that there are, one above the other.
Node Above(StaticGraph& graph, std::initializer_list<Node> parts) {
  std::vector<Node> there;
  std::ranges::copy_if(parts, std::back_inserter(there), Exists);
  return there.size() == 1 ? there.front() : graph.ConcatRows(there);
}

// Whether two actuators share a slot.
bool Share(const Eigen::MatrixXf& slots) {
  return ((slots.array() != 0.0F).rowwise().count() > 1).any();
}

}  // namespace

LatentModel::LatentModel(const LatentModelSpec& spec, Rng rng)
    : spec_(spec),
      encoder_({.target = spec.slow_encoder}),
      values_({.target = true}),
      policy_({.adam = {.epsilon = kPolicyAdamEpsilon}}),
      native_({.target = spec.slow_encoder}) {
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
  const int state = latent + spec.task_size;
  const int input = state + spec.action;
  encode_ =
      AddLatent(encoder_, "encoder", spec.observation + spec.task_size, {spec.encoder_width}, rng);
  next_ = AddLatent(dynamics_, kTransition, input, HiddenLayers(2, spec.width), rng);
  reward_ = add(dynamics_, "reward", input, outputs, 0.0);
  if (spec.termination) termination_ = add(dynamics_, "termination", state, 1, 1.0);
  q_ = add(values_, "q", input, outputs, 0.0, spec.q_count);
  pi_ = add(policy_, "policy", state, 2 * spec.action, 1.0);

  if (Share(spec.slots)) {
    pi_native_ = add(policy_, "policy_native", state, 2 * spec.actuators(), 0.0);
  }
  if (spec.native > 0) {
    encode_native_ =
        AddMlp(native_, "native",
               {.input = spec.native,
                .hidden = {spec.encoder_width},
                .output = latent,
                .activation = Activation::kMish,
                .layer_norm = true},
               rng, {.kind = InitKind::kTruncatedNormal, .gain = kDeviation, .last_scale = 0.0});
  }
  if (spec.tasks > 0) {
    task_vectors_ = task_.Add("vectors", spec.task_size, spec.tasks);
    InitTruncatedNormal(*task_vectors_, kDeviation, rng);
  }
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
  return encoder_.size() + dynamics_.size() + values_.size() + policy_.size() + native_.size() +
         task_.size();
}

Node LatentModel::BeforeSimNorm(StaticGraph& graph, Node x, const Latent& part, ParameterUse use) {
  return graph.LayerNorm(graph.Mlp(x, part.network, use), part.norm, use);
}

Node LatentModel::Task(StaticGraph& graph, Node index, ParameterUse use) {
  return graph.GatherColumns(graph.Param(*task_vectors_, use), index);
}

Node LatentModel::Encode(StaticGraph& graph, Node observation, const Context& context,
                         ParameterUse use) {
  const Node shared =
      spec_.native > 0 ? graph.SliceRows(observation, 0, spec_.observation) : observation;
  Node z = BeforeSimNorm(graph, Above(graph, {shared, context.task}), encode_, use);
  if (encode_native_) {
    const Node own = graph.SliceRows(observation, spec_.observation, spec_.native);
    z = graph.Add(z, graph.Mlp(own, *encode_native_, use));
  }
  return graph.Softmax(z, kGroup);
}

Node LatentModel::Input(StaticGraph& graph, Node z, Node action, const Context& context) {
  if (spec_.slots.size() > 0) action = graph.Linear(action, graph.Constant(spec_.slots));
  return Above(graph, {z, action, context.task});
}

Node LatentModel::Next(StaticGraph& graph, Node x, ParameterUse use) {
  return graph.Softmax(BeforeSimNorm(graph, x, next_, use), kGroup);
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

Node LatentModel::Termination(StaticGraph& graph, Node z, const Context& context,
                              ParameterUse use) {
  return graph.Mlp(Above(graph, {z, context.task}), termination_, use);
}

Node LatentModel::Decode(StaticGraph& graph, Node heads) const {
  return bins_ ? graph.TwoHotMean(heads, *bins_) : heads;
}

Node LatentModel::HeadLoss(StaticGraph& graph, Node heads, Node target) const {
  if (bins_) return graph.TwoHotCrossEntropy(heads, target, *bins_);
  return graph.Square(graph.Subtract(heads, target));
}

LatentModel::Choice LatentModel::Act(StaticGraph& graph, Node z, Node noise, const Context& context,
                                     ParameterUse use) {
  const Node state = Above(graph, {z, context.task});
  const Node head = graph.Mlp(state, pi_, use);
  const Node own = pi_native_ ? graph.Mlp(state, *pi_native_, use) : Node{};
  const int m = spec_.actuators();
  // an actuator does what its slot does, and what its own head adds
  const auto part = [&](int index) {
    Node rows = graph.SliceRows(head, index * spec_.action, spec_.action);
    if (spec_.slots.size() > 0) {
      const Eigen::MatrixXf actuators =
          (spec_.slots.transpose().array() != 0.0F).cast<float>().matrix();
      rows = graph.Linear(rows, graph.Constant(actuators));
    }
    return pi_native_ ? graph.Add(rows, graph.SliceRows(own, index * m, m)) : rows;
  };
  const auto masked = [&](Node x) {
    return Exists(context.mask) ? graph.Multiply(x, context.mask) : x;
  };
  const Node mu = masked(part(0));
  const auto half = static_cast<float>(0.5 * (kLogStdHigh - kLogStdLow));
  const Node log_std =
      masked(graph.Affine(graph.Tanh(part(1)), half, static_cast<float>(kLogStdLow) + half));
  noise = masked(noise);
  const Node u = graph.Add(mu, graph.Multiply(graph.Exp(log_std), noise));
  const auto constant = static_cast<float>(0.5 * std::log(2.0 * std::numbers::pi));
  const Node density = masked(graph.Affine(graph.Square(noise), 0.5F, constant));
  return {.action = graph.Tanh(u),
          .entropy = graph.SumRows(graph.Add(log_std, density)),
          .mode = graph.Tanh(mu),
          .mu = mu,
          .log_std = log_std};
}

void LatentModel::BoundTasks() {
  if (!task_vectors_) return;
  auto vectors = task_vectors_->value();
  for (auto vector : vectors.colwise()) {
    if (vector.norm() > 1.0F) vector.normalize();
  }
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
  if (native_.size() > 0) VisitParameters(state.Child("native"), native_);
  if (task_.size() > 0) VisitParameters(state.Child("task"), task_);
}

}  // namespace msrl
