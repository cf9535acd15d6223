// Which gradients arrive where, and that they add up.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/nn/static_graph.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::RandomMatrix;
using testing::Tol;

struct Small {
  explicit Small(ParameterUse use = ParameterUse::kTrained) {
    Rng rng(3, "small");
    first = AddLinear(parameters, "first", 4, 8, rng);
    second = AddLinear(parameters, "second", 8, 3, rng);
    x = graph.InputWithGradient(4, 5);
    h = graph.Tanh(graph.Linear(x, first, use));
    y = graph.Linear(h, second);
    loss = graph.Mean(graph.Square(y));
    graph.Finish();
    graph.FillNormal(x, rng);
    graph.Forward();
  }

  Parameters parameters{{.target = true}};
  LinearParameters first, second;
  StaticGraph graph;
  Node x, h, y, loss;
};

TEST(StaticGraphGradientsTest, ParameterGradientsAddUpUntilCleared) {
  Small s;
  s.graph.Backward(s.loss);
  const Eigen::MatrixXf once = s.first.weight.gradient();
  const Eigen::MatrixXf d_x = s.graph.gradient(s.x);
  EXPECT_GT(once.norm(), 1e-3F);
  s.graph.Backward(s.loss);
  EXPECT_LT((s.first.weight.gradient() - 2.0F * once).cwiseAbs().maxCoeff(), Tol(1e-6));
  EXPECT_EQ(s.graph.gradient(s.x), d_x);
  s.parameters.ClearGradients();
  EXPECT_EQ(s.first.weight.gradient().norm(), 0.0F);
  s.graph.Backward(s.loss);
  EXPECT_EQ(s.first.weight.gradient(), once);
}

TEST(StaticGraphGradientsTest, SeveralRoots) {
  Small s;
  const Eigen::MatrixXf d_y = Eigen::MatrixXf::Constant(3, 5, 0.5F);
  const Eigen::MatrixXf d_h = Eigen::MatrixXf::Constant(8, 5, -0.25F);
  s.graph.Backward({{s.y, d_y}});
  const Eigen::MatrixXf from_y = s.graph.gradient(s.x);
  s.graph.Backward({{s.h, d_h}});
  const Eigen::MatrixXf from_h = s.graph.gradient(s.x);
  EXPECT_EQ(s.graph.gradient(s.y).norm(), 0.0F);
  const Eigen::MatrixXf weights = s.first.weight.gradient();
  s.parameters.ClearGradients();
  s.graph.Backward({{s.y, d_y}, {s.h, d_h}});
  EXPECT_LT((s.graph.gradient(s.x) - from_y - from_h).cwiseAbs().maxCoeff(), Tol(1e-6));
  EXPECT_LT((s.first.weight.gradient() - weights).cwiseAbs().maxCoeff(), Tol(1e-6));
  EXPECT_GT(from_y.norm(), 1e-3F);
  EXPECT_GT(from_h.norm(), 1e-3F);
}

TEST(StaticGraphGradientsTest, SeedsOfPartsAreKept) {
  StaticGraph graph;
  const Node x = graph.InputWithGradient(6, 2);
  const Node y = graph.Scale(x, 2.0F);
  const Node top = graph.SliceRows(y, 0, 3);
  graph.Finish();
  graph.Forward();
  const Eigen::MatrixXf d_y = Eigen::MatrixXf::Constant(6, 2, 1.0F);
  const Eigen::MatrixXf d_top = Eigen::MatrixXf::Constant(3, 2, 10.0F);
  graph.Backward({{y, d_y}, {top, d_top}});
  Eigen::MatrixXf expected = Eigen::MatrixXf::Constant(6, 2, 2.0F);
  expected.topRows(3).setConstant(22.0F);
  EXPECT_EQ(graph.gradient(x), expected);
}

TEST(StaticGraphGradientsTest, FrozenParametersPassGradientsOn) {
  Small trained;
  Small frozen(ParameterUse::kFrozen);
  Small target(ParameterUse::kTarget);
  for (Small* s : {&trained, &frozen, &target}) s->graph.Backward(s->loss);
  for (Small* s : {&frozen, &target}) {
    EXPECT_EQ(s->graph.value(s->loss), trained.graph.value(trained.loss));
    EXPECT_EQ(s->graph.gradient(s->x), trained.graph.gradient(trained.x));
    EXPECT_EQ(s->first.weight.gradient().norm(), 0.0F);
    EXPECT_EQ(s->second.weight.gradient(), trained.second.weight.gradient());
  }
  // targets stay behind, and follow
  InitConstant(target.first.weight, 0.5);
  target.graph.Forward({target.h});
  EXPECT_EQ(target.graph.value(target.h), trained.graph.value(trained.h));
  target.parameters.Step(0.1, 0.25);
  target.graph.Forward({target.h});
  EXPECT_NE(target.graph.value(target.h), trained.graph.value(trained.h));
  const std::size_t at = target.first.weight.tensor().offset;
  const float start = trained.first.weight.value()(0, 0);
  EXPECT_NEAR(target.parameters.target()[at], start + 0.25F * (0.5F - start), Tol(1e-6));
  target.parameters.CopyToTarget();
  EXPECT_EQ(target.parameters.target()[at], target.parameters.values()[at]);
}

TEST(StaticGraphGradientsTest, StopGradient) {
  StaticGraph graph;
  const Node x = graph.InputWithGradient(3, 2);
  const Node y = graph.Multiply(x, graph.StopGradient(x));
  const Node z = graph.Sum(graph.Add(y, graph.StopGradient(graph.Square(x))));
  const Node constant = graph.Sum(graph.StopGradient(x));
  graph.Finish();
  Rng rng(1, "stop");
  graph.FillNormal(x, rng);
  graph.Forward();
  EXPECT_NEAR(graph.value(z)(0, 0), 2.0F * graph.value(x).squaredNorm(), Tol(1e-5));
  graph.Backward(z);
  EXPECT_EQ(graph.gradient(x), graph.value(x));
  EXPECT_THROW(graph.Backward(constant), InvariantError);
}

TEST(StaticGraphGradientsTest, StraightThroughSamples) {
  constexpr int kColumns = 4000;
  StaticGraph graph;
  const Node logits = graph.InputWithGradient(6, kColumns);
  const Node p = graph.Softmax(logits, 3);
  const Node noise = graph.Input(2, kColumns);
  const Node sample = graph.SampleOneHot(p, noise, 3);
  const Node mode = graph.ModeOneHot(p, 3);
  graph.Finish();
  Rng rng(5, "sample");
  Eigen::VectorXf column(6);
  column << 0.0F, 1.0F, -1.0F, 2.0F, 0.5F, 0.0F;
  graph.input(logits).colwise() = column;
  graph.FillUniform(noise, rng);
  graph.Forward();
  const Eigen::MatrixXf y = graph.value(sample);
  EXPECT_EQ((y.array() * (1.0F - y.array())).matrix().norm(), 0.0F);
  EXPECT_EQ(y.topRows(3).colwise().sum().minCoeff(), 1.0F);
  EXPECT_EQ(y.bottomRows(3).colwise().sum().maxCoeff(), 1.0F);
  EXPECT_LT((y.rowwise().mean() - graph.value(p).col(0)).cwiseAbs().maxCoeff(), Tol(0.03));
  EXPECT_EQ(graph.value(mode).col(0), (Eigen::VectorXf(6) << 0, 1, 0, 1, 0, 0).finished());
  // straight through: as if the sample were the probabilities
  const Eigen::MatrixXf d = RandomMatrix(6, kColumns, rng);
  graph.Backward({{sample, d}});
  EXPECT_EQ(graph.gradient(p), d);
  const Eigen::MatrixXf d_logits = graph.gradient(logits);
  graph.Backward({{p, d}});
  EXPECT_EQ(graph.gradient(logits), d_logits);
  EXPECT_GT(d_logits.norm(), 1.0F);
  // the edges of the unit interval
  graph.input(noise).setZero();
  graph.Forward({sample});
  EXPECT_EQ(graph.value(sample)(0, 0), 1.0F);
  graph.input(noise).setConstant(std::nextafter(1.0F, 0.0F));
  graph.Forward({sample});
  EXPECT_EQ(graph.value(sample)(2, 0), 1.0F);
}

TEST(StaticGraphGradientsTest, TwoHotHasTheMean) {
  StaticGraph graph;
  const Node x = graph.Input(1, 5);
  const Node y = graph.TwoHot(x, TwoHotBins::Even(9, 2.0));
  graph.Finish();
  graph.input(x) << -5.0F, -2.0F, 0.3F, 2.0F, 9.0F;
  graph.Forward();
  const Eigen::VectorXf bins = Eigen::VectorXf::LinSpaced(9, -2.0F, 2.0F);
  const Eigen::MatrixXf mean = bins.transpose() * graph.value(y);
  const Eigen::MatrixXf expected = graph.value(x).cwiseMax(-2.0F).cwiseMin(2.0F);
  EXPECT_LT((mean - expected).cwiseAbs().maxCoeff(), Tol(1e-6));
  EXPECT_EQ((graph.value(y).array() != 0.0F).count(), 1 + 1 + 2 + 1 + 1);
}

// Two passes give the same bits, whatever was in the arena.
TEST(StaticGraphGradientsTest, IsDeterministic) {
  Small s;
  s.graph.Backward(s.loss);
  const std::vector<float> first(s.parameters.gradients().begin(), s.parameters.gradients().end());
  const Eigen::MatrixXf x = s.graph.value(s.x);
  s.graph.input(s.x).setConstant(3.0F);
  s.graph.Forward();
  s.graph.Backward(s.loss);
  s.graph.input(s.x) = x;
  s.graph.Forward();
  s.parameters.ClearGradients();
  s.graph.Backward(s.loss);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), s.parameters.gradients().begin()));
}

}  // namespace
}  // namespace msrl
