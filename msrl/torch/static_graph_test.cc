// libtorch as the oracle of StaticGraph: values and gradients of every operation.
#include "msrl/nn/static_graph.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/tolerance.h"
#include "msrl/torch/fused_mlp_function.h"

namespace msrl {
namespace {

using testing::Tol;
using torch::Tensor;
using Nodes = std::vector<Node>;
using Tensors = std::vector<Tensor>;

struct Shape {
  int rows, columns;
};

// Operands are nodes with gradients; for libtorch they are [columns, rows] in double.
struct OracleCase {
  std::string name;
  std::vector<Shape> inputs;
  std::function<Node(StaticGraph&, const Nodes&)> ours;
  std::function<Tensor(const Tensors&)> theirs;
  double scale = 1.0;  // of the operands
  bool positive = false;
};

std::ostream& operator<<(std::ostream& out, const OracleCase& c) { return out << c.name; }

// A [columns, rows] copy in double.
Tensor TensorOf(const ConstStridedMap& m) {
  Eigen::MatrixXf copy = m;
  return AsTensor(copy).to(torch::kDouble);
}

OracleCase OfOne(const std::string& name, Node (StaticGraph::*op)(Node),
                 std::function<Tensor(const Tensor&)> theirs, double scale = 1.0,
                 bool positive = false) {
  return {name,
          {{13, 6}},
          [op](StaticGraph& g, const Nodes& n) { return (g.*op)(n[0]); },
          [theirs = std::move(theirs)](const Tensors& t) { return theirs(t[0]); },
          scale,
          positive};
}

OracleCase OfTwo(const std::string& name, Shape b, Node (StaticGraph::*op)(Node, Node),
                 Tensor (*theirs)(const Tensor&, const Tensor&)) {
  return {name,
          {{13, 6}, b},
          [op](StaticGraph& g, const Nodes& n) { return (g.*op)(n[0], n[1]); },
          [theirs](const Tensors& t) { return theirs(t[0], t[1]); }};
}

Tensor AttentionOf(const Tensors& t, int heads, int batch, bool causal) {
  const auto split = [&](const Tensor& x) {
    return x.view({batch, -1, heads, x.size(1) / heads}).transpose(1, 2);
  };
  const Tensor q = split(t[0]);
  Tensor scores =
      torch::matmul(q, split(t[1]).transpose(-2, -1)) / std::sqrt(static_cast<double>(q.size(3)));
  if (causal) {
    const Tensor hidden = torch::ones_like(scores[0][0]).triu(1).to(torch::kBool);
    scores = scores.masked_fill(hidden, -1e30);
  }
  return torch::matmul(torch::softmax(scores, -1), split(t[2]))
      .transpose(1, 2)
      .reshape({t[0].size(0), t[0].size(1)});
}

// libtorch's own GRU; x is [steps * batch, in].
Tensor GruOf(const Tensors& t, int batch) {
  const auto result =
      torch::gru(t[0].view({-1, batch, t[0].size(1)}), t[1].unsqueeze(0),
                 {t[2].t(), t[4].t(), t[3].view({-1}), t[5].view({-1})}, /*has_biases=*/true,
                 /*num_layers=*/1, /*dropout=*/0.0, /*train=*/true, /*bidirectional=*/false,
                 /*batch_first=*/false);
  return std::get<0>(result).reshape({t[0].size(0), t[1].size(1)});
}

std::vector<OracleCase> OracleCases() {
  std::vector<OracleCase> cases{
      OfOne("Relu", &StaticGraph::Relu, [](const Tensor& x) { return torch::relu(x); }),
      OfOne(
          "Tanh", &StaticGraph::Tanh, [](const Tensor& x) { return torch::tanh(x); }, 2.0),
      OfOne("Sigmoid", &StaticGraph::Sigmoid, [](const Tensor& x) { return torch::sigmoid(x); }),
      OfOne(
          "Silu", &StaticGraph::Silu, [](const Tensor& x) { return torch::silu(x); }, 3.0),
      OfOne("Elu", &StaticGraph::Elu, [](const Tensor& x) { return torch::elu(x); }),
      OfOne(
          "Mish", &StaticGraph::Mish, [](const Tensor& x) { return torch::mish(x); }, 8.0),
      OfOne(
          "Softplus", &StaticGraph::Softplus, [](const Tensor& x) { return torch::softplus(x); },
          8.0),
      OfOne("Exp", &StaticGraph::Exp, [](const Tensor& x) { return torch::exp(x); }),
      OfOne(
          "Log", &StaticGraph::Log, [](const Tensor& x) { return torch::log(x); }, 1.0, true),
      OfOne("Square", &StaticGraph::Square, [](const Tensor& x) { return x * x; }),
      OfOne(
          "Sqrt", &StaticGraph::Sqrt, [](const Tensor& x) { return torch::sqrt(x); }, 1.0, true),
      OfOne("Abs", &StaticGraph::Abs, [](const Tensor& x) { return torch::abs(x); }),
      OfOne(
          "Symlog", &StaticGraph::Symlog,
          [](const Tensor& x) { return torch::sign(x) * torch::log1p(torch::abs(x)); }, 20.0),
      OfOne("Symexp", &StaticGraph::Symexp,
            [](const Tensor& x) { return torch::sign(x) * torch::expm1(torch::abs(x)); }),
      OfOne("Sum", &StaticGraph::Sum,
            [](const Tensor& x) {
              return x.sum().view({1, 1});
            }),
      OfOne("Mean", &StaticGraph::Mean,
            [](const Tensor& x) {
              return x.mean().view({1, 1});
            }),
      OfOne("SumRows", &StaticGraph::SumRows, [](const Tensor& x) { return x.sum(1, true); }),
      OfOne("MeanRows", &StaticGraph::MeanRows, [](const Tensor& x) { return x.mean(1, true); }),
      OfOne("SumColumns", &StaticGraph::SumColumns, [](const Tensor& x) { return x.sum(0, true); }),
      OfOne("MeanColumns", &StaticGraph::MeanColumns,
            [](const Tensor& x) { return x.mean(0, true); }),
  };
  for (const auto& [end, b] : std::vector<std::pair<std::string, Shape>>{
           {"", {13, 6}}, {"Column", {13, 1}}, {"Row", {1, 6}}, {"Scalar", {1, 1}}}) {
    cases.push_back(OfTwo("Add" + end, b, &StaticGraph::Add,
                          [](const Tensor& s, const Tensor& t) { return s + t; }));
    cases.push_back(OfTwo("Subtract" + end, b, &StaticGraph::Subtract,
                          [](const Tensor& s, const Tensor& t) { return s - t; }));
    cases.push_back(OfTwo("Multiply" + end, b, &StaticGraph::Multiply,
                          [](const Tensor& s, const Tensor& t) { return s * t; }));
    cases.push_back(OfTwo("Min" + end, b, &StaticGraph::Min,
                          [](const Tensor& s, const Tensor& t) { return torch::minimum(s, t); }));
    cases.push_back(OfTwo("Max" + end, b, &StaticGraph::Max,
                          [](const Tensor& s, const Tensor& t) { return torch::maximum(s, t); }));
    cases.push_back(OfTwo("Divide" + end, b, &StaticGraph::Divide,
                          [](const Tensor& s, const Tensor& t) { return s / t; }));
    cases.back().positive = true;
  }
  const auto add = [&cases](OracleCase c) { cases.push_back(std::move(c)); };
  // equal operands
  add({"MaxOfEqual",
       {{5, 3}},
       [](StaticGraph& g, const Nodes& n) { return g.Max(n[0], n[0]); },
       [](const Tensors& t) { return torch::maximum(t[0], t[0]); }});
  add({"Affine",
       {{13, 6}},
       [](StaticGraph& g, const Nodes& n) { return g.Affine(n[0], -2.0F, 0.5F); },
       [](const Tensors& t) { return t[0] * -2.0 + 0.5; }});
  add({"Clamp",
       {{13, 6}},
       [](StaticGraph& g, const Nodes& n) { return g.Clamp(n[0], -0.5F, 0.75F); },
       [](const Tensors& t) { return t[0].clamp(-0.5, 0.75); }});
  add({"Linear",
       {{24, 33}, {40, 24}, {40, 1}},
       [](StaticGraph& g, const Nodes& n) { return g.Linear(n[0], n[1], n[2]); },
       [](const Tensors& t) {
         return torch::nn::functional::linear(t[0], t[1].t(), t[2].view({-1}));
       }});
  add({"ConcatAndSlice",
       {{4, 5}, {3, 5}},
       [](StaticGraph& g, const Nodes& n) {
         const Node both = g.ConcatRows({n[0], n[1]});
         return g.Multiply(g.SliceRows(both, 1, 4), g.SliceRows(both, 3, 4));
       },
       [](const Tensors& t) {
         const Tensor both = torch::cat({t[0], t[1]}, 1);
         return both.slice(1, 1, 5) * both.slice(1, 3, 7);
       }});
  add({"ConcatColumnsAndReshape",
       {{4, 5}, {4, 3}},
       [](StaticGraph& g, const Nodes& n) {
         const Node both = g.ConcatColumns({n[0], n[1]});
         return g.Reshape(g.SliceColumns(both, 1, 6), 8, 3);
       },
       [](const Tensors& t) {
         return torch::cat({t[0], t[1]}, 0).slice(0, 1, 7).reshape({3, 8});
       }});
  Eigen::MatrixXf index(1, 7);
  index << 3, 0, 2, 3, 3, 1, 0;
  const Tensor chosen = torch::tensor({3, 0, 2, 3, 3, 1, 0}, torch::kLong);
  add({"Embedding",
       {{6, 4}},
       [index](StaticGraph& g, const Nodes& n) { return g.GatherColumns(n[0], g.Constant(index)); },
       [chosen](const Tensors& t) { return torch::embedding(t[0], chosen); }});
  add({"Pick",
       {{4, 7}},
       [index](StaticGraph& g, const Nodes& n) { return g.Pick(n[0], g.Constant(index)); },
       [chosen](const Tensors& t) { return t[0].gather(1, chosen.unsqueeze(1)); }});
  for (const int group : {32, 8, 5}) {
    add({StrCat("Softmax", group),
         {{group * 3, 6}},
         [group](StaticGraph& g, const Nodes& n) { return g.Softmax(n[0], group); },
         [group](const Tensors& t) {
           return torch::softmax(t[0].view({6, 3, group}), -1).view({6, 3 * group});
         },
         2.0});
    add({StrCat("LogSoftmax", group),
         {{group * 3, 6}},
         [group](StaticGraph& g, const Nodes& n) { return g.LogSoftmax(n[0], group); },
         [group](const Tensors& t) {
           return torch::log_softmax(t[0].view({6, 3, group}), -1).view({6, 3 * group});
         },
         2.0});
  }
  add({"MeanSquaredError",
       {{5, 4}, {5, 4}},
       [](StaticGraph& g, const Nodes& n) { return g.MeanSquaredError(n[0], n[1]); },
       [](const Tensors& t) {
         return torch::mse_loss(t[0], t[1]).view({1, 1});
       }});
  add({"CrossEntropy",
       {{5, 4}, {5, 4}},
       [](StaticGraph& g, const Nodes& n) { return g.CrossEntropy(n[0], g.Softmax(n[1])); },
       [](const Tensors& t) {
         return -(torch::softmax(t[1], 1) * torch::log_softmax(t[0], 1)).sum(1, true);
       }});
  // a TD-MPC2 head: two-hot in the space of symlog, cross-entropy and decoded number
  const TwoHotBins symlog = TwoHotBins::Symlog(101, 10.0);
  const Eigen::MatrixXf targets =
      (Eigen::MatrixXf(2, 3) << 5.0F, -3.0F, 1e6F, 0.0F, 70.0F, -0.2F).finished();
  add({"TwoHotSymlogCrossEntropy",
       {{202, 3}},
       [=](StaticGraph& g, const Nodes& n) {
         return g.TwoHotCrossEntropy(n[0], g.Constant(targets), symlog);
       },
       [=](const Tensors& t) {
         const Tensor x = TensorOf({targets.data(), 2, 3, Eigen::OuterStride<>(2)});
         const Tensor at =
             (torch::clamp(torch::sign(x) * torch::log1p(torch::abs(x)), -10, 10) + 10) / 0.2;
         const Tensor below = torch::clamp(torch::floor(at), 0, 99);
         const Tensor two_hot =
             torch::one_hot(below.to(torch::kLong), 101) * (below + 1 - at).unsqueeze(-1) +
             torch::one_hot(below.to(torch::kLong) + 1, 101) * (at - below).unsqueeze(-1);
         return -(two_hot * torch::log_softmax(t[0].view({3, 2, 101}), -1)).sum(-1);
       }});
  add({"TwoHotSymlogMean",
       {{202, 3}},
       [=](StaticGraph& g, const Nodes& n) { return g.TwoHotMean(n[0], symlog); },
       [](const Tensors& t) {
         const Tensor points = torch::linspace(-10, 10, 101, torch::kDouble);
         const Tensor mean = (torch::softmax(t[0].view({3, 2, 101}), -1) * points).sum(-1);
         return torch::sign(mean) * torch::expm1(torch::abs(mean));
       }});
  // DreamerV3's: points are spread by symexp, weights linear in the number itself
  const TwoHotBins symexp = TwoHotBins::Symexp(255, 4.0);
  add({"TwoHotSymexpMean",
       {{255, 3}},
       [=](StaticGraph& g, const Nodes& n) { return g.TwoHotMean(n[0], symexp); },
       [](const Tensors& t) {
         const Tensor even = torch::linspace(-4, 4, 255, torch::kDouble);
         const Tensor points = torch::sign(even) * torch::expm1(torch::abs(even));
         return (torch::softmax(t[0], -1) * points).sum(-1, true);
       }});
  // the sample itself has no gradient: what libtorch calls straight through
  const Eigen::MatrixXf noise = Eigen::MatrixXf::Constant(2, 6, 0.4F);
  add({"SampleOneHot",
       {{8, 6}},
       [noise](StaticGraph& g, const Nodes& n) {
         return g.SampleOneHot(g.Softmax(n[0], 4), g.Constant(noise), 4);
       },
       [](const Tensors& t) {
         const Tensor p = torch::softmax(t[0].view({6, 2, 4}), -1);
         const Tensor below = (p.cumsum(-1) <= 0.4).sum(-1);
         const Tensor sample = torch::one_hot(below, 4).to(torch::kDouble);
         return (sample + p - p.detach()).view({6, 8});
       }});
  for (const int steps : {1, 6}) {
    add({StrCat("Gru", steps, "Steps"),
         {{7, 5 * steps}, {12, 5}, {36, 7}, {36, 1}, {36, 12}, {36, 1}},
         [](StaticGraph& g, const Nodes& n) {
           return g.GruFromGates(g.Linear(n[0], n[2], n[3]), n[1], n[4], n[5]);
         },
         [](const Tensors& t) { return GruOf(t, 5); },
         0.5});
  }
  for (const bool causal : {false, true}) {
    add({causal ? "CausalAttention" : "Attention",
         {{64, 48}, {64, 48}, {64, 48}},
         [causal](StaticGraph& g, const Nodes& n) {
           return g.Attention(n[0], n[1], n[2], {.heads = 4, .batch = 3, .causal = causal});
         },
         [causal](const Tensors& t) { return AttentionOf(t, 4, 3, causal); }});
  }
  // DreamerV3's recurrent unit: layer norm of one product, update gate shifted
  add({"GruWithLayerNorm",
       {{6, 5}, {8, 5}, {24, 14}},
       [](StaticGraph& g, const Nodes& n) {
         const Node parts = g.LayerNorm(g.Linear(g.ConcatRows({n[0], n[1]}), n[2]), 1e-3F);
         const Node reset = g.Sigmoid(g.SliceRows(parts, 0, 8));
         const Node candidate = g.Tanh(g.Multiply(reset, g.SliceRows(parts, 8, 8)));
         const Node update = g.Sigmoid(g.Affine(g.SliceRows(parts, 16, 8), 1.0F, -1.0F));
         return g.Add(g.Multiply(update, candidate),
                      g.Multiply(g.Affine(update, -1.0F, 1.0F), n[1]));
       },
       [](const Tensors& t) {
         const Tensor parts =
             torch::layer_norm(torch::cat({t[0], t[1]}, 1).matmul(t[2]), {24}, {}, {}, 1e-3);
         const Tensor reset = torch::sigmoid(parts.slice(1, 0, 8));
         const Tensor candidate = torch::tanh(reset * parts.slice(1, 8, 16));
         const Tensor update = torch::sigmoid(parts.slice(1, 16, 24) - 1.0);
         return update * candidate + (1.0 - update) * t[1];
       }});
  // an operand that everything below uses several times
  add({"Shared",
       {{6, 5}, {6, 6}},
       [](StaticGraph& g, const Nodes& n) {
         Node h = n[0];
         for (int i = 0; i < 4; ++i) h = g.Add(g.Tanh(g.Linear(h, n[1])), n[0]);
         return g.Multiply(h, g.StopGradient(h));
       },
       [](const Tensors& t) {
         Tensor h = t[0];
         for (int i = 0; i < 4; ++i) h = torch::tanh(h.matmul(t[1])) + t[0];
         return h * h.detach();
       },
       0.5});
  return cases;
}

class OracleTest : public ::testing::TestWithParam<OracleCase> {};

TEST_P(OracleTest, ValuesAndGradientsAreLibtorchs) {
  const OracleCase& c = GetParam();
  StaticGraph graph;
  Nodes nodes;
  for (const Shape shape : c.inputs) {
    nodes.push_back(graph.InputWithGradient(shape.rows, shape.columns));
  }
  const Node y = c.ours(graph, nodes);
  graph.Finish();
  Rng rng(11, c.name);
  Tensors tensors;
  for (const Node node : nodes) {
    graph.FillNormal(node, rng);
    graph.input(node) *= static_cast<float>(c.scale);
    if (c.positive) graph.input(node) = graph.value(node).cwiseAbs().array() + 0.2F;
    tensors.push_back(TensorOf(graph.value(node)).requires_grad_());
  }
  graph.Forward();
  const Tensor theirs = c.theirs(tensors);
  ASSERT_EQ(theirs.size(0), y.columns);
  ASSERT_EQ(theirs.size(1), y.rows);
  const auto difference = [](const Tensor& a, const Tensor& b) {
    return ((a - b).abs() / (1.0 + b.abs())).max().item<double>();
  };
  EXPECT_LT(difference(TensorOf(graph.value(y)), theirs.detach()), Tol(3e-6));

  Eigen::MatrixXf d_y(y.rows, y.columns);
  for (float& value : d_y.reshaped()) value = static_cast<float>(rng.Normal());
  graph.Backward({{y, d_y}});
  theirs.backward(AsTensor(d_y).to(torch::kDouble));
  double largest = 0.0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Tensor gradient = tensors[i].grad();
    EXPECT_LT(difference(TensorOf(graph.gradient(nodes[i])), gradient), Tol(1e-5)) << i;
    largest = std::max(largest, gradient.abs().max().item<double>());
  }
  EXPECT_GT(largest, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Ops, OracleTest, ::testing::ValuesIn(OracleCases()),
                         [](const auto& c) { return c.param.name; });

// Norms and perceptrons have their tensors in a Parameters object.
TEST(OracleParametersTest, NormsAndPerceptron) {
  Rng rng(12, "norms");
  Parameters parameters;
  const NormParameters layer = AddNorm(parameters, "layer", 24);
  const NormParameters rms = AddNorm(parameters, "rms", 24, /*shift=*/false);
  const MlpParameters mlp =
      AddMlp(parameters, "mlp",
             {.input = 24, .hidden = {32}, .output = 5, .activation = Activation::kElu}, rng);
  for (float& v : parameters.values()) v += static_cast<float>(0.2 * rng.Normal());
  StaticGraph graph;
  const Node x = graph.InputWithGradient(24, 9);
  const Node y = graph.Mlp(graph.RmsNorm(graph.Tanh(graph.LayerNorm(x, layer)), rms), mlp);
  const Node loss = graph.Mean(graph.Square(y));
  graph.Finish();
  graph.FillNormal(x, rng);
  graph.Forward();
  graph.Backward(loss);

  Tensors p;
  for (const NamedTensor& tensor : parameters.tensors()) {
    p.push_back(AsTensor(parameters.values(), tensor).to(torch::kDouble).clone().requires_grad_());
  }
  const Tensor input = TensorOf(graph.value(x)).requires_grad_();
  Tensor h = torch::tanh(torch::layer_norm(input, {24}, p[0].view({-1}), p[1].view({-1}), 1e-5));
  h = h * torch::rsqrt((h * h).mean(1, true) + 1e-5) * p[2].view({-1});
  h = torch::elu(torch::nn::functional::linear(h, p[3], p[4].view({-1})));
  h = torch::nn::functional::linear(h, p[5], p[6].view({-1}));
  const Tensor their_loss = (h * h).mean();
  their_loss.backward();
  EXPECT_NEAR(graph.value(loss)(0, 0), their_loss.item<double>(), Tol(1e-6));
  EXPECT_LT((TensorOf(graph.gradient(x)) - input.grad()).abs().max().item<double>(), Tol(1e-6));
  for (std::size_t i = 0; i < p.size(); ++i) {
    const Tensor ours = AsTensor(parameters.gradients(), parameters.tensors()[i]);
    EXPECT_LT((ours - p[i].grad()).abs().max().item<double>(), Tol(2e-6)) << i;
    EXPECT_GT(p[i].grad().abs().max().item<double>(), 1e-4) << i;
  }
}

}  // namespace
}  // namespace msrl
