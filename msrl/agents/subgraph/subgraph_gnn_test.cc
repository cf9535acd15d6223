#include "msrl/agents/subgraph/subgraph_gnn.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "msrl/testing/plain_module.h"

namespace msrl {
namespace {

using namespace ::msrl::testing;  // NOLINT: a test of formulas

constexpr int kLength = ValueModule::kTrainingLength;
constexpr SubgraphGnnShape kSmall{.node_width = 4, .layers = 2, .head_width = 3};

Eigen::VectorXd Join(const std::vector<Eigen::VectorXd>& parts) {
  Index size = 0;
  for (const auto& part : parts) size += part.size();
  Eigen::VectorXd joined(size);
  Index at = 0;
  for (const auto& part : parts) {
    joined.segment(at, part.size()) = part;
    at += part.size();
  }
  return joined;
}

Eigen::VectorXd TwoLayers(const PlainTensors& w, const std::string& name,
                          const Eigen::VectorXd& x) {
  return w.Linear(name + ".1", PlainSilu(w.Linear(name + ".0", x)));
}

// V of the last state of a window, over edges that are looked for one by one.
double ValueOfWindow(const PlainTensors& w, const Eigen::MatrixXd& window, int layers,
                     int& near_edges) {
  struct Edge {
    Index from;
    Eigen::VectorXd attributes;
  };
  const Index states = window.cols();
  const auto geometry = [&](Index t) -> Eigen::VectorXd {
    return window.col(t).head(kGeometrySize);
  };
  std::vector<std::vector<Edge>> into(static_cast<std::size_t>(states));
  for (Index t = 0; t < states; ++t) {
    const auto add = [&](Index from, Index step, int type) {
      Eigen::VectorXd done = Eigen::VectorXd::Zero(kActionCodeSize + 1);
      if (step >= 0) {
        done << window.col(step).segment(kActionAt, kActionCodeSize),
            100.0 * window(kRewardAt, step);
      }
      into[static_cast<std::size_t>(t)].push_back(
          {from, Join({geometry(from) - geometry(t), done, Eigen::VectorXd::Unit(3, type)})});
    };
    if (t > 0) add(t - 1, t, 0);
    if (t + 1 < states) add(t + 1, t + 1, 1);
    Index near = -1;
    double nearest = SubgraphGnn::kRadius;
    for (Index other = 0; other < states; ++other) {
      const double distance = (geometry(other) - geometry(t)).norm();
      if (std::abs(other - t) > 1 && distance < nearest) {
        near = other;
        nearest = distance;
      }
    }
    if (near < 0) continue;
    add(near, -1, 2);
    ++near_edges;
  }
  std::vector<Eigen::VectorXd> h;
  for (Index t = 0; t < states; ++t) {
    const Eigen::Vector3d about(100.0 * window(kRewardAt, t),
                                static_cast<double>(states - 1 - t) / 16.0,
                                static_cast<double>(into[static_cast<std::size_t>(t)].size()) / 3);
    h.push_back(
        w.Norm(w.Linear("node", Join({window.col(t).head(kStateChannels), about})), "node.norm"));
  }
  for (int l = 0; l < layers; ++l) {
    const std::string name = "layers." + std::to_string(l);
    std::vector<Eigen::VectorXd> next;
    for (std::size_t t = 0; t < h.size(); ++t) {
      Eigen::VectorXd mean = Eigen::VectorXd::Zero(h[t].size());
      for (const Edge& edge : into[t]) {
        mean += TwoLayers(w, name + ".message",
                          Join({h[t], h[static_cast<std::size_t>(edge.from)], edge.attributes})) /
                static_cast<double>(into[t].size());
      }
      next.push_back(
          w.Norm(h[t] + TwoLayers(w, name + ".update", Join({h[t], mean})), name + ".norm"));
    }
    h = next;
  }
  Eigen::VectorXd mean = Eigen::VectorXd::Zero(h[0].size());
  for (const auto& node : h) mean += node / static_cast<double>(states);
  return w.Linear("value", PlainSilu(w.Linear("head", Join({h.back(), mean}))))[0];
}

TEST(SubgraphGnn, LossAndGradientsAreThoseOfTheFormula) {
  Rng rng(1, "init");
  SubgraphGnn module(kSmall, {}, rng);
  Randomise(module.parameters(), rng);
  constexpr int kWindows = 4;
  TeachingGraph teaching(module, kWindows);
  const auto states = [](int w) { return w == 0 ? kLength : 4 * w - 3; };  // 16, 1, 5, 9
  FillRandomWindows(teaching, rng, states);
  // near enough for some neighbours
  teaching.graph.input(teaching.windows.channels).topRows(kGeometrySize) *= 0.3F;
  int near_edges = 0;
  const auto loss = [&](const Doubles& parameters) {
    const PlainTensors tensors{module.parameters().tensors(), parameters};
    const auto channels = teaching.graph.input(teaching.windows.channels);
    double sum = 0.0;
    for (int w = 0; w < kWindows; ++w) {
      Eigen::MatrixXd window(kChannels, states(w));
      for (int t = 0; t < states(w); ++t) {
        window.col(t) = channels.col(t * kWindows + w).cast<double>();
      }
      const double label = static_cast<double>(
          teaching.graph.input(teaching.label)(0, (states(w) - 1) * kWindows + w));
      sum += PlainHuber(ValueOfWindow(tensors, window, kSmall.layers, near_edges) - label);
    }
    return sum / kWindows;
  };
  ExpectLossAndGradients(module, teaching, loss);
  EXPECT_GT(near_edges, 3);
}

TEST(SubgraphGnn, LooksBackAndNotAhead) {
  Rng rng(1, "init");
  SubgraphGnn module({}, {}, rng);
  ExpectCausal(module, /*looks_back=*/true);
}

// The same nodes and edges under other numbers.
TEST(SubgraphGnn, TheOrderOfNodesDoesNotMatter) {
  Rng rng(1, "init");
  SubgraphGnn module({.node_width = 16, .layers = 3, .head_width = 8}, {}, rng);
  StaticGraph g;
  SubgraphGnn::Graph graph;
  graph.count = 1;
  graph.length = kLength;
  graph.nodes = g.Input(SubgraphGnn::kNodeChannels, kLength);
  for (int k = 0; k < SubgraphGnn::kEdgeTypes; ++k) {
    graph.source[static_cast<std::size_t>(k)] = g.Input(1, kLength);
    graph.edges[static_cast<std::size_t>(k)] = g.Input(SubgraphGnn::kEdgeChannels, kLength);
  }
  graph.share = g.Input(SubgraphGnn::kEdgeTypes, kLength);
  graph.weight = g.Input(1, kLength);
  graph.centre = g.Input(1, 1);
  const ValueModule::Slots slots = module.ReadGraph(g, graph, ParameterUse::kFrozen);
  g.Finish();

  const Eigen::MatrixXf nodes = RandomMatrix(SubgraphGnn::kNodeChannels, kLength, rng);
  std::vector<Eigen::MatrixXf> edges;
  std::vector<std::vector<int>> sources(SubgraphGnn::kEdgeTypes, std::vector<int>(kLength));
  for (auto& source : sources) {
    edges.push_back(RandomMatrix(SubgraphGnn::kEdgeChannels, kLength, rng));
    for (int& from : source) from = static_cast<int>(rng.Index(kLength));
  }
  const Eigen::MatrixXf share = RandomMatrix(SubgraphGnn::kEdgeTypes, kLength, rng).cwiseAbs();
  const auto value = [&](const std::vector<int>& at, int centre) {
    for (int i = 0; i < kLength; ++i) {
      g.input(graph.nodes).col(at[static_cast<std::size_t>(i)]) = nodes.col(i);
      g.input(graph.share).col(at[static_cast<std::size_t>(i)]) = share.col(i);
      for (std::size_t k = 0; k < sources.size(); ++k) {
        g.input(graph.edges[k]).col(at[static_cast<std::size_t>(i)]) = edges[k].col(i);
        g.input(graph.source[k])(0, at[static_cast<std::size_t>(i)]) = static_cast<float>(
            at[static_cast<std::size_t>(sources[k][static_cast<std::size_t>(i)])]);
      }
    }
    g.input(graph.weight).setConstant(1.0F / kLength);
    g.input(graph.centre)(0, 0) = static_cast<float>(at[static_cast<std::size_t>(centre)]);
    g.Forward();
    Eigen::VectorXf said(module.z_size() + 1);
    said << g.value(slots.z).col(0), g.value(slots.value)(0, 0);
    return said;
  };
  std::vector<int> order(kLength);
  std::iota(order.begin(), order.end(), 0);
  const Eigen::VectorXf before = value(order, 5);
  for (int k = 0; k < 5; ++k) {
    Shuffle(rng, order);
    EXPECT_LT((value(order, 5) - before).cwiseAbs().maxCoeff(), Tol(1e-5));
    EXPECT_GT((value(order, 6) - before).cwiseAbs().maxCoeff(), 1e-3);  // another node is another
  }
}

TEST(SubgraphGnn, HasTheSizeOfTheTable) {
  Rng rng(1, "init");
  EXPECT_EQ(SubgraphGnn({}, {}, rng).parameters().size(), 185'913U);
}

TEST(SubgraphGnn, RescalesItsValue) {
  Rng rng(1, "init");
  SubgraphGnn module(kSmall, {}, rng);
  ExpectRescales(module);
}

}  // namespace
}  // namespace msrl
