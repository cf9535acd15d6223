#include "msrl/nn/static_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::RandomMatrix;
using testing::Tol;

// ---- recurrence ----

// The fused sequence, single cells, and the formula from small operations: one network.
TEST(StaticGraphTest, UnrolledCellsAreTheSequence) {
  constexpr int kWidth = 8;
  constexpr int kBatch = 3;
  constexpr int kSteps = 5;
  Rng rng(2, "gru");
  Parameters parameters;
  const GruParameters layer = AddGru(parameters, "gru", 4, kWidth, rng);
  StaticGraph graph;
  const Node x = graph.InputWithGradient(4, kSteps * kBatch);
  const Node start = graph.InputWithGradient(kWidth, kBatch);
  const Node fused = graph.Gru(x, start, layer);
  std::vector<Node> cells;
  std::vector<Node> composed;
  Node h = start;
  Node c = start;
  for (int t = 0; t < kSteps; ++t) {
    const Node part = graph.SliceColumns(x, t * kBatch, kBatch);
    h = graph.Gru(part, h, layer);
    cells.push_back(h);
    const Node gates = graph.Linear(part, layer.input);
    const Node u = graph.Linear(c, layer.hidden);
    const Node both = graph.Sigmoid(
        graph.Add(graph.SliceRows(gates, 0, 2 * kWidth), graph.SliceRows(u, 0, 2 * kWidth)));
    const Node r = graph.SliceRows(both, 0, kWidth);
    const Node z = graph.SliceRows(both, kWidth, kWidth);
    const Node m = graph.Tanh(graph.Add(graph.SliceRows(gates, 2 * kWidth, kWidth),
                                        graph.Multiply(r, graph.SliceRows(u, 2 * kWidth, kWidth))));
    c = graph.Add(m, graph.Multiply(z, graph.Subtract(c, m)));
    composed.push_back(c);
  }
  const std::vector<Node> outputs{fused, graph.ConcatColumns(cells), graph.ConcatColumns(composed)};
  graph.Finish();
  graph.FillNormal(x, rng);
  graph.FillNormal(start, rng);
  graph.Forward();
  const Eigen::MatrixXf d = RandomMatrix(kWidth, kSteps * kBatch, rng);
  std::vector<Eigen::MatrixXf> d_x;
  std::vector<Eigen::MatrixXf> d_start;
  std::vector<Eigen::VectorXf> d_parameters;
  for (const Node y : outputs) {
    EXPECT_LT((graph.value(y) - graph.value(fused)).cwiseAbs().maxCoeff(), Tol(1e-6));
    parameters.ClearGradients();
    graph.Backward({{y, d}});
    d_x.emplace_back(graph.gradient(x));
    d_start.emplace_back(graph.gradient(start));
    d_parameters.emplace_back(Eigen::Map<Eigen::VectorXf>(
        parameters.gradients().data(), static_cast<Eigen::Index>(parameters.size())));
    EXPECT_LT((d_x.back() - d_x[0]).cwiseAbs().maxCoeff(), Tol(2e-6));
    EXPECT_LT((d_start.back() - d_start[0]).cwiseAbs().maxCoeff(), Tol(2e-6));
    EXPECT_LT((d_parameters.back() - d_parameters[0]).cwiseAbs().maxCoeff(), Tol(1e-5));
  }
  EXPECT_GT(d_start[0].norm(), 1e-2F);
}

// The first of eight numbers must be told at the end.
TEST(StaticGraphTest, GruLearnsToRemember) {
  constexpr int kBatch = 32;
  constexpr int kSteps = 8;
  Rng rng(4, "remember");
  Parameters parameters({.adam = {.max_norm = 1.0}});
  const GruParameters memory = AddGru(parameters, "memory", 1, 16, rng);
  const LinearParameters head = AddLinear(parameters, "head", 16, 1, rng);
  StaticGraph graph;
  const Node x = graph.Input(1, kSteps * kBatch);
  const Node start = graph.Input(16, kBatch);
  const Node states = graph.Gru(x, start, memory);
  const Node answer = graph.Linear(graph.SliceColumns(states, (kSteps - 1) * kBatch, kBatch), head);
  const Node loss = graph.MeanSquaredError(answer, graph.SliceColumns(x, 0, kBatch));
  graph.Finish();
  double first = 0.0;
  double last = 0.0;
  constexpr int kUpdates = 1000;
  for (int i = 0; i < kUpdates; ++i) {
    for (float& v : graph.input(x).reshaped()) v = rng.Bernoulli(0.5) ? 1.0F : -1.0F;
    graph.Forward();
    parameters.ClearGradients();
    graph.Backward(loss);
    parameters.Step(5e-3);
    if (i < 20) first += graph.value(loss)(0, 0) / 20.0;
    if (i >= kUpdates - 20) last += graph.value(loss)(0, 0) / 20.0;
  }
  EXPECT_GT(first, 0.8);
  EXPECT_LT(last, 0.05);
}

// ---- no allocation, errors ----

TEST(StaticGraphTest, NothingIsAllocatedOnceBuilt) {
  Rng rng(6, "all");
  Parameters parameters({.adam = {.max_norm = 1.0}, .target = true});
  const GruParameters gru = AddGru(parameters, "gru", 12, 128, rng);
  const NormParameters norm = AddNorm(parameters, "norm", 128);
  const LinearParameters head = AddLinear(parameters, "head", 128, 12, rng);
  const Parameter table = AddEmbedding(parameters, "table", 12, 5, rng);
  const MlpParameters mlp =
      AddMlp(parameters, "mlp", {.input = 12, .hidden = {16}, .output = 12, .members = 2}, rng);
  StaticGraph graph;
  const Node index = graph.Input(1, 6);
  const Node x = graph.GatherColumns(graph.Param(table), index);
  const Node start = graph.InputWithGradient(128, 2);
  const Node h = graph.LayerNorm(graph.Gru(x, start, gru), norm);
  const Node logits = graph.Linear(graph.RmsNorm(graph.Silu(h)), head);
  const Node p = graph.Softmax(logits, 4);
  const Node noise = graph.Input(3, 6);
  const Node sample = graph.SampleOneHot(p, noise, 4);
  const Node mixed = graph.Attention(sample, x, logits, {.heads = 2, .batch = 2, .causal = true});
  const Node q =
      graph.Mlp(graph.ConcatRows({graph.SliceRows(mixed, 0, 6), graph.SliceRows(x, 6, 6)}), mlp);
  const Node q_target = graph.Mlp(x, mlp, ParameterUse::kTarget);
  const Node low = graph.Min(graph.SliceRows(q, 0, 12), graph.SliceRows(q, 12, 12));
  const Node picked = graph.Pick(low, index);
  const Node error = graph.MeanSquaredError(picked, graph.MeanRows(q_target));
  const Node entropy =
      graph.Mean(graph.CrossEntropy(logits, graph.TwoHot(picked, TwoHotBins::Even(12, 1.0))));
  const Node loss = graph.Add(
      error, graph.Add(entropy, graph.Mean(graph.Reshape(graph.Clamp(mixed, -1, 1), 36, 2))));
  graph.Finish();
  EXPECT_GT(graph.arena_size(), 128U * 6 * 4);

  const Eigen::MatrixXf d_h = RandomMatrix(128, 6, rng);
  const std::int64_t before = AllocationCount();
  for (int i = 0; i < 3; ++i) {
    graph.FillUniform(noise, rng);
    graph.FillNormal(start, rng);
    graph.input(index).setConstant(static_cast<float>(i));
    graph.Forward();
    graph.Forward({loss, sample});
    parameters.ClearGradients();
    graph.Backward(loss);
    graph.Backward({{h, d_h}});
    EXPECT_TRUE(std::isfinite(graph.value(loss)(0, 0) + graph.gradient(start)(0, 0)));
    parameters.Step(1e-3, 0.01);
  }
  EXPECT_EQ(AllocationCount(), before);
}

std::string CheckText(const std::function<void()>& f) {
  try {
    f();
  } catch (const InvariantError& error) {
    return error.what();
  }
  return "";
}

// A target that depends on what the same pass computes.
TEST(StaticGraphTest, TheRestComesAfterItsInputs) {
  Rng rng(8, "rest");
  Parameters parameters;
  const LinearParameters layer = AddLinear(parameters, "layer", 3, 2, rng);
  StaticGraph graph;
  const Node x = graph.Input(3, 4);
  const Node y = graph.Linear(x, layer);
  const Node target = graph.Input(2, 4);
  const Node difference = graph.Subtract(y, target);
  const Node loss = graph.Mean(graph.Square(difference));
  graph.Finish();
  EXPECT_THROW(graph.ForwardRest(), InvariantError);
  graph.FillNormal(x, rng);
  graph.Forward({y});
  EXPECT_EQ(graph.value(difference).norm(), 0.0F);  // not computed yet
  const Eigen::MatrixXf first = graph.value(y);
  graph.input(target) = first.array() - 0.5F;
  graph.input(x).setZero();  // nobody looks any more
  graph.ForwardRest();
  EXPECT_EQ(graph.value(y), first);
  EXPECT_NEAR(graph.value(loss)(0, 0), 0.25, Tol(1e-6));
  graph.ForwardRest();  // nothing is left
  EXPECT_EQ(graph.value(y), first);
  graph.Backward(loss);
  EXPECT_GT(layer.bias->gradient().norm(), 0.1F);
}

TEST(StaticGraphTest, ErrorsNameTheShapes) {
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  Rng rng(1, "errors");
  Parameters parameters;
  const LinearParameters layer = AddLinear(parameters, "layer", 4, 3, rng);
  EXPECT_TRUE(has(CheckText([&] { parameters.Add("layer.weight", 1, 1); }), "layer.weight"));
  StaticGraph graph;
  const Node x = graph.Input(5, 2);
  const Node y = graph.InputWithGradient(4, 2);
  EXPECT_TRUE(has(CheckText([&] { graph.Linear(x, layer); }), "3 x 4, x 5 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.Add(x, y); }), "5 x 2 and 4 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.ConcatColumns({x, y}); }), "5 x 2 and 4 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.SliceRows(x, 3, 3); }), "rows 3 and 3 more of 5 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.Softmax(x, 2); }), "groups of 2 in 5 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.Reshape(x, 3, 3); }), "3 x 3"));
  EXPECT_TRUE(has(CheckText([&] { graph.Attention(y, y, y, {.heads = 3}); }), "3 heads"));
  EXPECT_TRUE(has(CheckText([&] { graph.Input(0, 2); }), "0 x 2"));
  EXPECT_TRUE(has(CheckText([&] { graph.Pick(y, graph.Square(y)); }), "StopGradient"));
  EXPECT_TRUE(has(CheckText([&] { graph.Forward(); }), "Finish"));
  EXPECT_TRUE(has(CheckText([&] { graph.Square({99, 1, 1}); }), "node 99"));
  const Node index = graph.Input(1, 2);
  const Node picked = graph.Pick(y, index);
  const Node z = graph.Linear(y, layer);
  graph.Finish();
  EXPECT_TRUE(has(CheckText([&] { graph.Square(x); }), "finished"));
  EXPECT_TRUE(has(CheckText([&] { parameters.Add("late", 1, 1); }), "late"));
  EXPECT_TRUE(has(CheckText([&] { graph.Backward(picked); }), "Forward"));
  graph.input(index).setConstant(4.0F);
  EXPECT_TRUE(has(CheckText([&] { graph.Forward(); }), "index 4 at (0, 0), not one of 4"));
  graph.input(index).setConstant(0.5F);
  EXPECT_TRUE(has(CheckText([&] { graph.Forward(); }), "index 0.5"));
  graph.input(index).setConstant(3.0F);
  graph.Forward();
  EXPECT_TRUE(has(CheckText([&] { graph.Backward(z); }), "3 x 2"));
  const Eigen::MatrixXf wrong = Eigen::MatrixXf::Zero(3, 1);
  EXPECT_TRUE(has(CheckText([&] { graph.Backward({{z, wrong}}); }), "3 x 1"));
  EXPECT_TRUE(has(CheckText([&] { graph.gradient(x); }), "wants gradients"));
  EXPECT_TRUE(has(CheckText([&] { graph.input(z); }), "no input"));
  StaticGraph other;
  other.Square(other.Param(layer.weight, ParameterUse::kTarget));
  EXPECT_TRUE(has(CheckText([&] { other.Finish(); }), "targets"));
}

}  // namespace
}  // namespace msrl
