// A graph network on the last states of an episode, joined where they follow each other and where
// they are near each other. docs/agents/subgraph-gnn.md
#ifndef MSRL_AGENTS_SUBGRAPH_SUBGRAPH_GNN_H_
#define MSRL_AGENTS_SUBGRAPH_SUBGRAPH_GNN_H_

#include <array>
#include <vector>

#include "msrl/agents/host/value_module.h"

namespace msrl {

struct SubgraphGnnShape {
  int node_width = 92;
  int layers = 3;
  int head_width = 128;

  template <typename V>
  void Fields(V&& visit) {
    visit("node_width", node_width, "width of what is known of a node", Between(1, 4096));
    visit("layers", layers, "rounds of messages", Between(1, 16));
    visit("head_width", head_width, "hidden layer of the value head", Between(1, 4096));
  }
};

// z_raw = [h of the newest state; mean h].
class SubgraphGnn : public ValueModule {
 public:
  static constexpr const char* kKind = "subgraph-gnn";
  using Shape = SubgraphGnnShape;

  // An edge into a node comes from the state before, from the one after, or from the nearest other
  // one within this distance of the geometry.
  static constexpr int kEdgeTypes = 3;
  static constexpr float kRadius = 0.5F;
  // [x; r before; age; in-degree], [difference of geometry; action; reward; type].
  static constexpr int kNodeChannels = kStateChannels + 3;
  static constexpr int kEdgeChannels = kGeometrySize + kActionCodeSize + 1 + kEdgeTypes;

  SubgraphGnn(const SubgraphGnnShape& shape, const ParameterOptions& options, Rng& rng);

  int context() const override { return kTrainingLength; }
  int z_size() const override { return 2 * shape_.node_width; }
  Slots Read(StaticGraph& g, const Windows& windows, ParameterUse use) override;
  // One value per window: that of its last state.
  Node Loss(StaticGraph& g, const Windows& windows, Node label, Node weight) override;
  void RescaleValue(double factor, double offset) override;
  void AddInputs(StaticGraph& g, Windows& windows) const override;
  void FillInputs(StaticGraph& g, const Windows& windows) const override;

  // The graph of all windows; a column per node, those of a window `count` apart in any order.
  struct Graph {
    int count = 0;                        // windows
    int length = 0;                       // nodes of each, some of no weight
    Node nodes;                           // kNodeChannels
    std::array<Node, kEdgeTypes> source;  // 1: the column that an edge of this type comes from
    std::array<Node, kEdgeTypes> edges;   // kEdgeChannels
    Node share;                           // kEdgeTypes: 1 / in-degree, or 0 if there is no edge
    Node weight;                          // 1: 1 / nodes of the window, or 0
    Node centre;                          // 1 x count: the column of the newest state
  };
  Slots ReadGraph(StaticGraph& g, const Graph& graph, ParameterUse use) const;

 private:
  // Of Windows::extra.
  enum Extra : std::size_t {
    kNodes,
    kSources,
    kEdges = kSources + kEdgeTypes,
    kShare = kEdges + kEdgeTypes,
    kWeight,
    kExtras
  };

  struct Layer {
    LinearParameters message[2], update[2];
    NormParameters norm;
  };

  SubgraphGnnShape shape_;
  LinearParameters node_;
  NormParameters node_norm_;
  std::vector<Layer> layers_;
  LinearParameters hidden_, value_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_SUBGRAPH_SUBGRAPH_GNN_H_
