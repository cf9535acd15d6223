#include "msrl/nn/static_graph.h"

#include <array>
#include <utility>

#include "msrl/core/check.h"
#include "msrl/nn/graph_ops.h"
#include "msrl/nn/graph_state.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

using internal::Binary;
using internal::GraphState;
using internal::Unary;
using internal::UnaryFunction;

std::string ShapeText(Node x) { return StrCat(x.rows, " x ", x.columns); }

// The length of a repeated pair of lengths; 0 if they don't fit.
int Joint(int a, int b) { return a == b || b == 1 ? a : a == 1 ? b : 0; }

}  // namespace

StaticGraph::StaticGraph() : state_(std::make_unique<GraphState>()) {}
StaticGraph::~StaticGraph() = default;
StaticGraph::StaticGraph(StaticGraph&&) noexcept = default;
StaticGraph& StaticGraph::operator=(StaticGraph&&) noexcept = default;

// ---- inputs and parameters ----

Node StaticGraph::Input(int rows, int columns) {
  GraphState::Info info;
  info.rows = rows;
  info.columns = columns;
  return state_->AddNode(info);
}

Node StaticGraph::InputWithGradient(int rows, int columns) {
  GraphState::Info info;
  info.rows = rows;
  info.columns = columns;
  info.wants_gradient = true;
  return state_->AddNode(info);
}

Node StaticGraph::Constant(const ConstMatrixRef& value) {
  const Node node = Input(static_cast<int>(value.rows()), static_cast<int>(value.cols()));
  state_->AddConstant(node.id, value);
  return node;
}

Node StaticGraph::Param(const Parameter& parameter, ParameterUse use) {
  const NamedTensor& tensor = parameter.tensor();
  const int known = state_->FindParameter(parameter, use);
  if (known >= 0) return {known, tensor.rows, tensor.columns};
  state_->UseParameters(parameter.owner);
  GraphState::Info info;
  info.kind = GraphState::Kind::kParameter;
  info.rows = tensor.rows;
  info.columns = tensor.columns;
  info.stride = tensor.rows;
  info.owner = parameter.owner;
  info.tensor = parameter.index;
  info.use = use;
  info.wants_gradient = use == ParameterUse::kTrained;
  return state_->AddNode(info);
}

// ---- layers ----

Node StaticGraph::Linear(Node x, Node weight) {
  MSRL_CHECK(weight.columns == x.rows, "weight is ", ShapeText(weight), ", x ", ShapeText(x));
  const std::array inputs{x, weight};
  return state_->AddOp(weight.rows, x.columns, inputs, internal::LinearOp());
}

Node StaticGraph::Linear(Node x, Node weight, Node bias) {
  MSRL_CHECK(weight.columns == x.rows, "weight is ", ShapeText(weight), ", x ", ShapeText(x));
  MSRL_CHECK(bias.rows == weight.rows && bias.columns == 1, "bias is ", ShapeText(bias),
             ", weight ", ShapeText(weight));
  state_->ReserveScratch(static_cast<std::size_t>(weight.rows));
  const std::array inputs{x, weight, bias};
  return state_->AddOp(weight.rows, x.columns, inputs, internal::LinearOp());
}

Node StaticGraph::Linear(Node x, const LinearParameters& layer, ParameterUse use) {
  const Node weight = Param(layer.weight, use);
  return layer.bias ? Linear(x, weight, Param(*layer.bias, use)) : Linear(x, weight);
}

Node StaticGraph::BlockLinear(Node x, Node weight, int blocks, int parts) {
  return AddBlockLinear(std::array{x, weight}, blocks, parts);
}

Node StaticGraph::BlockLinear(Node x, Node weight, Node bias, int blocks, int parts) {
  MSRL_CHECK(bias.rows == weight.rows && bias.columns == 1, "bias is ", ShapeText(bias),
             ", weight ", ShapeText(weight));
  state_->ReserveScratch(static_cast<std::size_t>(weight.rows));
  return AddBlockLinear(std::array{x, weight, bias}, blocks, parts);
}

Node StaticGraph::AddBlockLinear(std::span<const Node> inputs, int blocks, int parts) {
  const Node x = inputs[0];
  const Node weight = inputs[1];
  MSRL_CHECK(blocks >= 1 && parts >= 1 && weight.rows % (blocks * parts) == 0 &&
                 weight.columns * blocks == x.rows,
             "weight is ", ShapeText(weight), ", x ", ShapeText(x), ", ", blocks, " blocks, ",
             parts, " parts");
  return state_->AddOp(weight.rows, x.columns, inputs, internal::BlockLinearOp(blocks, parts));
}

Node StaticGraph::Mlp(Node x, const MlpParameters& network, ParameterUse use) {
  MSRL_CHECK(network.function != nullptr, "a network that was never added");
  const MlpSpec& spec = network.function->spec();
  MSRL_CHECK(x.rows == spec.input || x.rows == spec.input * spec.members, "x is ", ShapeText(x),
             ", spec.input ", spec.input, ", members ", spec.members);
  // a node for the first tensor says that the output depends on parameters
  const std::array inputs{x, Param({network.owner, network.index}, use)};
  return state_->AddOp(spec.output * spec.members, x.columns, inputs,
                       internal::MlpOp(network, use, x.columns));
}

Node StaticGraph::MlpMembers(Node x, const MlpParameters& network, Node members, ParameterUse use) {
  MSRL_CHECK(network.function != nullptr, "a network that was never added");
  const MlpSpec& spec = network.function->spec();
  MSRL_CHECK(x.rows == spec.input, "x is ", ShapeText(x), ", spec.input ", spec.input);
  MSRL_CHECK(members.columns == 1, "members are ", ShapeText(members), ", not one column");
  const std::array inputs{x, members, Param({network.owner, network.index}, use)};
  return state_->AddOp(spec.output * members.rows, x.columns, inputs,
                       internal::MlpMembersOp(network, use, members.rows, x.columns));
}

Node StaticGraph::Normalise(Node x, const NormParameters* layer, ParameterUse use, bool centre,
                            float epsilon) {
  std::vector<Node> inputs{x};
  if (layer != nullptr) inputs.push_back(Param(layer->scale, use));
  if (layer != nullptr && layer->shift) inputs.push_back(Param(*layer->shift, use));
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    MSRL_CHECK(inputs[i].rows == x.rows && inputs[i].columns == 1, "the norm is of ",
               inputs[i].rows, " rows, x is ", ShapeText(x));
  }
  const std::size_t moments = state_->Reserve(2 * static_cast<std::size_t>(x.columns));
  return state_->AddOp(x.rows, x.columns, inputs, internal::NormOp(centre, epsilon, moments));
}

Node StaticGraph::LayerNorm(Node x, float epsilon) {
  return Normalise(x, nullptr, ParameterUse::kTrained, true, epsilon);
}
Node StaticGraph::LayerNorm(Node x, const NormParameters& layer, ParameterUse use, float epsilon) {
  return Normalise(x, &layer, use, true, epsilon);
}
Node StaticGraph::RmsNorm(Node x, float epsilon) {
  return Normalise(x, nullptr, ParameterUse::kTrained, false, epsilon);
}
Node StaticGraph::RmsNorm(Node x, const NormParameters& layer, ParameterUse use, float epsilon) {
  return Normalise(x, &layer, use, false, epsilon);
}

Node StaticGraph::Gru(Node x, Node h, const GruParameters& layer, ParameterUse use) {
  MSRL_CHECK(layer.hidden.bias.has_value(), "a GRU without bias");
  return GruFromGates(Linear(x, layer.input, use), h, Param(layer.hidden.weight, use),
                      Param(*layer.hidden.bias, use));
}

Node StaticGraph::GruFromGates(Node gates, Node h, Node weight, Node bias) {
  MSRL_CHECK(gates.rows == 3 * h.rows && gates.columns % h.columns == 0, "gates are ",
             ShapeText(gates), ", the state ", ShapeText(h));
  MSRL_CHECK(weight.rows == 3 * h.rows && weight.columns == h.rows, "weight is ", ShapeText(weight),
             ", the state ", ShapeText(h));
  MSRL_CHECK(bias.rows == 3 * h.rows && bias.columns == 1, "bias is ", ShapeText(bias),
             ", the state ", ShapeText(h));
  const std::array inputs{gates, h, weight, bias};
  return state_->AddOp(h.rows, gates.columns, inputs,
                       internal::GruOp(h.rows, h.columns, gates.columns / h.columns, *state_));
}

Node StaticGraph::Attention(Node q, Node k, Node v, const AttentionOptions& options) {
  MSRL_CHECK(options.heads >= 1 && options.batch >= 1, options.heads, " heads, batch ",
             options.batch);
  MSRL_CHECK(q.rows == k.rows && q.rows == v.rows && k.columns == v.columns, "q is ", ShapeText(q),
             ", k ", ShapeText(k), ", v ", ShapeText(v));
  MSRL_CHECK(q.rows % options.heads == 0, q.rows, " rows for ", options.heads, " heads");
  MSRL_CHECK(q.columns % options.batch == 0 && k.columns % options.batch == 0, "q is ",
             ShapeText(q), ", k ", ShapeText(k), ", batch ", options.batch);
  const std::array inputs{q, k, v};
  return state_->AddOp(q.rows, q.columns, inputs,
                       internal::AttentionOp(options, q.rows, q.columns / options.batch,
                                             k.columns / options.batch, *state_));
}

// ---- element by element ----

Node StaticGraph::Apply(Node x, UnaryFunction f) {
  const std::array inputs{x};
  return state_->AddOp(x.rows, x.columns, inputs, internal::UnaryOp(f));
}

Node StaticGraph::Activate(Node x, Activation activation) {
  switch (activation) {
    case Activation::kIdentity:
      return x;
    case Activation::kRelu:
      return Relu(x);
    case Activation::kTanh:
      return Tanh(x);
    case Activation::kElu:
      return Elu(x);
    case Activation::kSilu:
      return Silu(x);
    case Activation::kMish:
      return Mish(x);
  }
  MSRL_CHECK(false, "no such activation");
  return x;
}

Node StaticGraph::Relu(Node x) { return Apply(x, {Unary::kRelu}); }
Node StaticGraph::Tanh(Node x) { return Apply(x, {Unary::kTanh}); }
Node StaticGraph::Sigmoid(Node x) { return Apply(x, {Unary::kSigmoid}); }
Node StaticGraph::Silu(Node x) { return Apply(x, {Unary::kSilu}); }
Node StaticGraph::Elu(Node x) { return Apply(x, {Unary::kElu}); }
Node StaticGraph::Mish(Node x) { return Apply(x, {Unary::kMish}); }
Node StaticGraph::Softplus(Node x) { return Apply(x, {Unary::kSoftplus}); }
Node StaticGraph::Exp(Node x) { return Apply(x, {Unary::kExp}); }
Node StaticGraph::Log(Node x) { return Apply(x, {Unary::kLog}); }
Node StaticGraph::Square(Node x) { return Apply(x, {Unary::kSquare}); }
Node StaticGraph::Sqrt(Node x) { return Apply(x, {Unary::kSqrt}); }
Node StaticGraph::Abs(Node x) { return Apply(x, {Unary::kAbs}); }
Node StaticGraph::Symlog(Node x) { return Apply(x, {Unary::kSymlog}); }
Node StaticGraph::Symexp(Node x) { return Apply(x, {Unary::kSymexp}); }
Node StaticGraph::Affine(Node x, float factor, float offset) {
  return Apply(x, {Unary::kAffine, factor, offset});
}
Node StaticGraph::Clamp(Node x, float low, float high) {
  MSRL_CHECK_LE(low, high);
  return Apply(x, {Unary::kClamp, low, high});
}

Node StaticGraph::Apply(Node a, Node b, Binary f) {
  const int rows = Joint(a.rows, b.rows);
  const int columns = Joint(a.columns, b.columns);
  MSRL_CHECK(rows > 0 && columns > 0, "the operands are ", ShapeText(a), " and ", ShapeText(b));
  const std::array inputs{a, b};
  return state_->AddOp(rows, columns, inputs, internal::BinaryOp(f));
}

Node StaticGraph::Add(Node a, Node b) { return Apply(a, b, Binary::kAdd); }
Node StaticGraph::Subtract(Node a, Node b) { return Apply(a, b, Binary::kSubtract); }
Node StaticGraph::Multiply(Node a, Node b) { return Apply(a, b, Binary::kMultiply); }
Node StaticGraph::Divide(Node a, Node b) { return Apply(a, b, Binary::kDivide); }
Node StaticGraph::Min(Node a, Node b) { return Apply(a, b, Binary::kMin); }
Node StaticGraph::Max(Node a, Node b) { return Apply(a, b, Binary::kMax); }

// ---- parts ----

Node StaticGraph::SliceRows(Node x, int first, int count) {
  MSRL_CHECK(first >= 0 && count >= 1 && first + count <= x.rows, "rows ", first, " and ", count,
             " more of ", ShapeText(x));
  return state_->AddView(x, first, count, x.columns, true);
}

Node StaticGraph::SliceColumns(Node x, int first, int count) {
  MSRL_CHECK(first >= 0 && count >= 1 && first + count <= x.columns, "columns ", first, " and ",
             count, " more of ", ShapeText(x));
  return state_->AddView(x, first * state_->Get(x).stride, x.rows, count, true);
}

Node StaticGraph::StopGradient(Node x) {
  return state_->AddView(x, 0, x.rows, x.columns, /*with_gradient=*/false);
}

Node StaticGraph::Concat(std::span<const Node> parts, bool rows) {
  MSRL_CHECK(!parts.empty(), "nothing to put together");
  int total = 0;
  for (const Node part : parts) {
    MSRL_CHECK(rows ? part.columns == parts[0].columns : part.rows == parts[0].rows,
               "the parts are ", ShapeText(parts[0]), " and ", ShapeText(part));
    total += rows ? part.rows : part.columns;
  }
  return state_->AddOp(rows ? total : parts[0].rows, rows ? parts[0].columns : total, parts,
                       internal::ConcatOp(rows));
}

Node StaticGraph::ConcatRows(std::span<const Node> parts) { return Concat(parts, true); }
Node StaticGraph::ConcatRows(std::initializer_list<Node> parts) {
  return Concat({parts.begin(), parts.size()}, true);
}
Node StaticGraph::ConcatColumns(std::span<const Node> parts) { return Concat(parts, false); }
Node StaticGraph::ConcatColumns(std::initializer_list<Node> parts) {
  return Concat({parts.begin(), parts.size()}, false);
}

Node StaticGraph::Reshape(Node x, int rows, int columns) {
  MSRL_CHECK(rows >= 1 && columns >= 1 &&
                 static_cast<std::int64_t>(rows) * columns ==
                     static_cast<std::int64_t>(x.rows) * x.columns &&
                 (rows % x.rows == 0 || x.rows % rows == 0),
             ShapeText(x), " can't become ", rows, " x ", columns);
  const std::array inputs{x};
  return state_->AddOp(rows, columns, inputs, internal::ReshapeOp());
}

Node StaticGraph::GatherColumns(Node x, Node index) {
  MSRL_CHECK(index.rows == 1, "index is ", ShapeText(index), ", not one row");
  MSRL_CHECK(!state_->Get(index).wants_gradient, "an index has no gradient; use StopGradient()");
  const std::array inputs{x, index};
  return state_->AddOp(x.rows, index.columns, inputs, internal::GatherColumnsOp());
}

Node StaticGraph::Pick(Node x, Node index) {
  MSRL_CHECK(index.columns == x.columns, "index is ", ShapeText(index), ", x ", ShapeText(x));
  MSRL_CHECK(!state_->Get(index).wants_gradient, "an index has no gradient; use StopGradient()");
  const std::array inputs{x, index};
  return state_->AddOp(index.rows, x.columns, inputs, internal::PickOp());
}

// ---- categories ----

Node StaticGraph::SoftmaxOf(Node x, int group, bool log) {
  if (group == 0) group = x.rows;
  MSRL_CHECK(group >= 1 && x.rows % group == 0, "groups of ", group, " in ", ShapeText(x));
  const std::array inputs{x};
  return state_->AddOp(x.rows, x.columns, inputs, internal::SoftmaxOp(group, log));
}

Node StaticGraph::Softmax(Node x, int group) { return SoftmaxOf(x, group, false); }
Node StaticGraph::LogSoftmax(Node x, int group) { return SoftmaxOf(x, group, true); }

Node StaticGraph::OneHot(Node probabilities, const Node* uniform, int group) {
  const Node p = probabilities;
  if (group == 0) group = p.rows;
  MSRL_CHECK(group >= 1 && p.rows % group == 0, "groups of ", group, " in ", ShapeText(p));
  if (uniform == nullptr) {
    const std::array inputs{p};
    return state_->AddOp(p.rows, p.columns, inputs, internal::OneHotOp(group));
  }
  MSRL_CHECK(uniform->rows == p.rows / group && uniform->columns == p.columns, "uniform is ",
             ShapeText(*uniform), " for groups of ", group, " in ", ShapeText(p));
  const std::array inputs{p, StopGradient(*uniform)};
  return state_->AddOp(p.rows, p.columns, inputs, internal::OneHotOp(group));
}

Node StaticGraph::SampleOneHot(Node probabilities, Node uniform, int group) {
  return OneHot(probabilities, &uniform, group);
}
Node StaticGraph::ModeOneHot(Node probabilities, int group) {
  return OneHot(probabilities, nullptr, group);
}

// ---- reductions and losses ----

Node StaticGraph::Reduce(Node x, bool rows, bool columns, bool mean) {
  const int count = (rows ? x.rows : 1) * (columns ? x.columns : 1);
  const float scale = mean ? 1.0F / static_cast<float>(count) : 1.0F;
  const std::array inputs{x};
  return state_->AddOp(rows ? 1 : x.rows, columns ? 1 : x.columns, inputs,
                       internal::ReduceOp(scale));
}

Node StaticGraph::Sum(Node x) { return Reduce(x, true, true, false); }
Node StaticGraph::Mean(Node x) { return Reduce(x, true, true, true); }
Node StaticGraph::SumRows(Node x) { return Reduce(x, true, false, false); }
Node StaticGraph::MeanRows(Node x) { return Reduce(x, true, false, true); }
Node StaticGraph::SumColumns(Node x) { return Reduce(x, false, true, false); }
Node StaticGraph::MeanColumns(Node x) { return Reduce(x, false, true, true); }

Node StaticGraph::MeanSquaredError(Node x, Node target) {
  return Mean(Square(Subtract(x, target)));
}

Node StaticGraph::CrossEntropy(Node logits, Node target) {
  MSRL_CHECK(logits.rows == target.rows && logits.columns == target.columns, "logits are ",
             ShapeText(logits), ", the target ", ShapeText(target));
  return Scale(SumRows(Multiply(target, LogSoftmax(logits))), -1.0F);
}

Node StaticGraph::TwoHot(Node x, const TwoHotBins& bins) {
  MSRL_CHECK(x.rows == 1, "x is ", ShapeText(x), ", not one row");
  const std::array inputs{x};
  return state_->AddOp(bins.count(), x.columns, inputs, internal::TwoHotOp(bins),
                       /*differentiable=*/false);
}

Node StaticGraph::TwoHotCrossEntropy(Node logits, Node x, const TwoHotBins& bins) {
  const int members = logits.rows / bins.count();
  MSRL_CHECK(logits.rows == members * bins.count() && logits.columns == x.columns &&
                 (x.rows == 1 || x.rows == members),
             "logits are ", ShapeText(logits), ", x is ", ShapeText(x), ", ", bins.count(),
             " bins");
  const std::array inputs{logits, x};
  return state_->AddOp(members, x.columns, inputs,
                       internal::TwoHotCrossEntropyOp(bins, members, x.columns, *state_));
}

Node StaticGraph::TwoHotMean(Node logits, const TwoHotBins& bins) {
  const int members = logits.rows / bins.count();
  MSRL_CHECK(members > 0 && logits.rows == members * bins.count(), "logits are ", ShapeText(logits),
             ", ", bins.count(), " bins");
  const std::array inputs{logits};
  return state_->AddOp(members, logits.columns, inputs,
                       internal::TwoHotMeanOp(bins, members, logits.columns, *state_));
}

// ---- running ----

void StaticGraph::Finish() { state_->Finish(); }

StridedMap StaticGraph::input(Node node) {
  const GraphState::Info& n = state_->Get(node);
  MSRL_CHECK(state_->finished(), "input() before Finish()");
  MSRL_CHECK(n.kind == GraphState::Kind::kInput, "node ", node.id, " is no input");
  return {n.value, n.rows, n.columns, Eigen::OuterStride<>(n.stride)};
}

void StaticGraph::FillNormal(Node node, Rng& rng) {
  StridedMap x = input(node);
  for (Eigen::Index j = 0; j < x.cols(); ++j) {
    msrl::FillNormal(rng, {x.col(j).data(), static_cast<std::size_t>(x.rows())});
  }
}

void StaticGraph::FillUniform(Node node, Rng& rng) {
  StridedMap x = input(node);
  for (Eigen::Index j = 0; j < x.cols(); ++j) {
    msrl::FillUniform(rng, {x.col(j).data(), static_cast<std::size_t>(x.rows())});
  }
}

ConstStridedMap StaticGraph::value(Node node) const {
  const GraphState::Info& n = state_->Get(node);
  MSRL_CHECK(state_->finished(), "value() before Finish()");
  return {n.value, n.rows, n.columns, Eigen::OuterStride<>(n.stride)};
}

void StaticGraph::Forward() { state_->Forward(); }
void StaticGraph::Forward(std::initializer_list<Node> outputs) {
  state_->Forward({outputs.begin(), outputs.size()});
}
void StaticGraph::ForwardRest() { state_->ForwardRest(); }
void StaticGraph::Backward(Node loss) { state_->BackwardFrom(loss); }
void StaticGraph::Backward(std::initializer_list<GraphSeed> seeds) {
  state_->Backward({seeds.begin(), seeds.size()});
}

ConstStridedMap StaticGraph::gradient(Node node) {
  const internal::ConstMatrixView d = state_->ReadGradient(node);
  return {d.data, d.rows, d.columns, Eigen::OuterStride<>(d.stride)};
}

std::size_t StaticGraph::arena_size() const { return state_->arena_size(); }

}  // namespace msrl
