#include "msrl/core/graph.h"

#include <utility>

#include "msrl/core/check.h"

namespace msrl {

void RequireValid(const Multigraph& graph) {
  const auto nodes = static_cast<int>(graph.nodes.cols());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const GraphEdge& edge = graph.edges[e];
    if (edge.tail < 0 || edge.head < 0 || edge.tail >= nodes || edge.head >= nodes) {
      throw UserError(StrCat("edge ", e, " goes from node ", edge.tail, " to ", edge.head,
                             ", but the graph has ", nodes, " nodes"));
    }
  }
}

Eigen::VectorXd LiftEdge(const Lift& lift, const Multigraph& graph, const GraphEdge& edge) {
  Eigen::VectorXd psi(lift.m());
  lift.Apply(graph.nodes.col(edge.tail), edge.action, edge.reward, graph.nodes.col(edge.head), psi);
  return psi;
}

SegmentMatrix Describe(const Lift::Ptr& lift, const Multigraph& graph) {
  RequireValid(graph);
  Eigen::MatrixXd psi(lift->m(), static_cast<Index>(graph.edges.size()));
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    try {
      psi.col(static_cast<Index>(e)) = LiftEdge(*lift, graph, graph.edges[e]);
    } catch (const UserError& error) {
      throw UserError(StrCat("edge ", e, ": ", error.what()));
    }
  }
  SegmentMatrix matrix(lift);
  matrix.AddSteps(psi);
  return matrix;
}

Multigraph GraphOf(const Segment& segment) {
  Multigraph graph{.nodes = segment.x, .edges = {}};
  for (Index t = 0; t < segment.horizon(); ++t) {
    const auto node = static_cast<int>(t);
    graph.edges.push_back({node, node + 1, segment.a.col(t), segment.r[t]});
  }
  return graph;
}

Multigraph Reversed(const Multigraph& graph) {
  Multigraph reversed = graph;
  for (GraphEdge& edge : reversed.edges) std::swap(edge.tail, edge.head);
  return reversed;
}

}  // namespace msrl
