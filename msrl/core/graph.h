// Directed multigraphs as trajectory data without an order (paper, Appendix "Symbolic subgraph
// patterns"): edges are transitions.
#ifndef MSRL_CORE_GRAPH_H_
#define MSRL_CORE_GRAPH_H_

#include <Eigen/Core>
#include <vector>

#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

struct GraphEdge {
  int tail = 0;
  int head = 0;
  Eigen::VectorXd action;  // xi(a_e), size q
  double reward = 0.0;
};

struct Multigraph {
  Eigen::MatrixXd nodes;  // d x |V|, the embedding phi(v) of a node per column
  std::vector<GraphEdge> edges;
};

// UserError if an edge names a node that does not exist.
void RequireValid(const Multigraph& graph);

// The lift of one edge, size m.
Eigen::VectorXd LiftEdge(const Lift& lift, const Multigraph& graph, const GraphEdge& edge);

// M(G) = sum_e psi_e psi_e^T. Equals M(tau) if the edges are the transitions of tau.
SegmentMatrix Describe(const Lift::Ptr& lift, const Multigraph& graph);

// The path graph of a segment: a node per state, an edge per transition.
Multigraph GraphOf(const Segment& segment);

// Every edge turned round, with its action and reward.
Multigraph Reversed(const Multigraph& graph);

}  // namespace msrl

#endif  // MSRL_CORE_GRAPH_H_
