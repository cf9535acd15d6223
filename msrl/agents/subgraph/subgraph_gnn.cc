#include "msrl/agents/subgraph/subgraph_gnn.h"

#include <string>

#include "msrl/core/check.h"

namespace msrl {
namespace {

enum EdgeType : int { kForward, kBackward, kNear };

}  // namespace

SubgraphGnn::SubgraphGnn(const SubgraphGnnShape& shape, const ParameterOptions& options, Rng& rng)
    : ValueModule(options), shape_(shape) {
  const int width = shape.node_width;
  const auto linear = [&](const std::string& name, int in, int out) {
    return AddLinear(parameters(), name, in, out, rng);
  };
  node_ = linear("node", kNodeChannels, width);
  node_norm_ = AddNorm(parameters(), "node.norm", width);
  for (int i = 0; i < shape.layers; ++i) {
    const std::string name = StrCat("layers.", i);
    Layer& layer = layers_.emplace_back();
    layer.message[0] = linear(name + ".message.0", 2 * width + kEdgeChannels, width);
    layer.message[1] = linear(name + ".message.1", width, width);
    layer.update[0] = linear(name + ".update.0", 2 * width, width);
    layer.update[1] = linear(name + ".update.1", width, width);
    layer.norm = AddNorm(parameters(), name + ".norm", width);
  }
  hidden_ = linear("head", 2 * width, shape.head_width);
  value_ = linear("value", shape.head_width, 1);
}

ValueModule::Slots SubgraphGnn::ReadGraph(StaticGraph& g, const Graph& graph,
                                          ParameterUse use) const {
  const auto perceptron = [&](Node x, const LinearParameters(&layers)[2]) {
    return g.Linear(g.Silu(g.Linear(x, layers[0], use)), layers[1], use);
  };
  Node h = g.LayerNorm(g.Linear(graph.nodes, node_, use), node_norm_, use);
  for (const Layer& layer : layers_) {
    // mean_j m_ij,  m_ij = message [h_i; h_j; e_ij]
    Node mean;
    for (int type = 0; type < kEdgeTypes; ++type) {
      const auto k = static_cast<std::size_t>(type);
      const Node from = g.GatherColumns(h, graph.source[k]);
      const Node message = perceptron(g.ConcatRows({h, from, graph.edges[k]}), layer.message);
      const Node part = g.Multiply(message, g.SliceRows(graph.share, type, 1));
      mean = type == 0 ? part : g.Add(mean, part);
    }
    h = g.LayerNorm(g.Add(h, perceptron(g.ConcatRows({h, mean}), layer.update)), layer.norm, use);
  }
  const Node weighted = g.Multiply(h, graph.weight);
  Node mean = g.SliceColumns(weighted, 0, graph.count);
  for (int t = 1; t < graph.length; ++t) {
    mean = g.Add(mean, g.SliceColumns(weighted, t * graph.count, graph.count));
  }
  const Node z = g.ConcatRows({g.GatherColumns(h, graph.centre), mean});
  return {z, g.Linear(g.Silu(g.Linear(z, hidden_, use)), value_, use)};
}

void SubgraphGnn::AddInputs(StaticGraph& g, Windows& windows) const {
  const int columns = windows.length * windows.count;
  windows.extra.resize(kExtras);
  windows.extra[kNodes] = g.Input(kNodeChannels, columns);
  for (std::size_t k = 0; k < kEdgeTypes; ++k) {
    windows.extra[kSources + k] = g.Input(1, columns);
    windows.extra[kEdges + k] = g.Input(kEdgeChannels, columns);
  }
  windows.extra[kShare] = g.Input(kEdgeTypes, columns);
  windows.extra[kWeight] = g.Input(1, columns);
}

void SubgraphGnn::FillInputs(StaticGraph& g, const Windows& windows) const {
  const int count = windows.count;
  const auto channels = g.input(windows.channels);
  auto nodes = g.input(windows.extra[kNodes]);
  auto share = g.input(windows.extra[kShare]);
  auto weight = g.input(windows.extra[kWeight]);
  share.setZero();
  weight.setZero();
  for (int w = 0; w < count; ++w) {
    const int last = static_cast<int>(g.input(windows.end)(0, w)) / count;
    const auto column = [&](int t) { return t * count + w; };
    const auto geometry = [&](int t) { return channels.col(column(t)).head<kGeometrySize>(); };
    for (int t = 0; t < windows.length; ++t) {
      // an edge from state `from`; what was done and got between both is told by the `step` state
      const auto join = [&](int type, int from, int step) {
        const auto k = static_cast<std::size_t>(type);
        const bool there = from >= 0;
        g.input(windows.extra[kSources + k])(0, column(t)) =
            static_cast<float>(column(there ? from : t));
        auto edge = g.input(windows.extra[kEdges + k]).col(column(t));
        edge.setZero();
        if (!there) return 0;
        edge.head<kGeometrySize>() = geometry(from) - geometry(t);
        if (step >= 0) {
          const auto token = channels.col(column(step));
          edge.segment<kActionCodeSize>(kGeometrySize) = token.segment<kActionCodeSize>(kActionAt);
          edge[kGeometrySize + kActionCodeSize] = kRewardGain * token[kRewardAt];
        }
        edge[kGeometrySize + kActionCodeSize + 1 + type] = 1.0F;
        share(type, column(t)) = 1.0F;
        return 1;
      };
      const bool inside = t <= last;
      int near = -1;
      float nearest = kRadius;
      for (int other = 0; inside && other <= last; ++other) {
        if (std::abs(other - t) < 2) continue;
        // dead slots read zero in both
        const float distance = (geometry(other) - geometry(t)).norm();
        if (distance >= nearest) continue;
        near = other;
        nearest = distance;
      }
      const int edges = join(kForward, inside ? t - 1 : -1, t) +
                        join(kBackward, t < last ? t + 1 : -1, t + 1) + join(kNear, near, -1);
      if (edges > 0) share.col(column(t)) /= static_cast<float>(edges);
      auto node = nodes.col(column(t));
      node.head<kStateChannels>() = channels.col(column(t)).head<kStateChannels>();
      node[kStateChannels] = kRewardGain * channels(kRewardAt, column(t));
      node[kStateChannels + 1] = static_cast<float>(last - t) / static_cast<float>(kTrainingLength);
      node[kStateChannels + 2] = static_cast<float>(edges) / static_cast<float>(kEdgeTypes);
      if (inside) weight(0, column(t)) = 1.0F / static_cast<float>(last + 1);
    }
  }
}

ValueModule::Slots SubgraphGnn::Read(StaticGraph& g, const Windows& windows, ParameterUse use) {
  MSRL_CHECK_EQ(windows.extra.size(), std::size_t{kExtras});
  Graph graph;
  graph.count = windows.count;
  graph.length = windows.length;
  graph.nodes = windows.extra[kNodes];
  for (std::size_t k = 0; k < kEdgeTypes; ++k) {
    graph.source[k] = windows.extra[kSources + k];
    graph.edges[k] = windows.extra[kEdges + k];
  }
  graph.share = windows.extra[kShare];
  graph.weight = windows.extra[kWeight];
  graph.centre = windows.end;
  return ReadGraph(g, graph, use);
}

Node SubgraphGnn::Loss(StaticGraph& g, const Windows& windows, Node label, Node /*weight*/) {
  const Slots slots = Read(g, windows, ParameterUse::kTrained);
  const float each = 1.0F / static_cast<float>(windows.count);
  const Node weight = g.Constant(Eigen::MatrixXf::Constant(1, windows.count, each));
  return WeightedHuber(g, slots.value, g.GatherColumns(label, windows.end), weight);
}

void SubgraphGnn::RescaleValue(double factor, double offset) {
  RescaleLinear("value", factor, offset);
}

}  // namespace msrl
