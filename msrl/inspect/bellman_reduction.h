// The paper's Bellman reduction, exactly, where all histories can be listed: is Q* of a history a
// function of (o, Z, a), and does value iteration on (o, Z) find it? (Propositions "Exact Bellman
// reduction to the lifted matrix state" and "Population sufficiency of the matrix state".)
#ifndef MSRL_INSPECT_BELLMAN_REDUCTION_H_
#define MSRL_INSPECT_BELLMAN_REDUCTION_H_

#include <functional>
#include <vector>

#include "msrl/core/graph.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

struct HistoryStep {
  double reward = 0.0;
  int next = 0;  // the history that it makes
};

// A history of a deterministic process, as far as it matters for what follows.
struct History {
  int node = 0;  // where it is now
  std::vector<int> edges;
  SegmentMatrix z;
  std::vector<HistoryStep> steps;  // one per action; none where the process ends
};

// All walks of at most `steps` edges from a node, shorter ones first; then the process ends. Edges
// that leave a node are its actions. UserError as Describe has it.
std::vector<History> ListHistories(const Lift::Ptr& lift, const Multigraph& graph, int start,
                                   int steps);

// What an agent knows of a history; histories with equal knowledge (to 1e-9) are one lifted state.
using Knowledge = std::function<std::vector<double>(const History&)>;

struct BellmanReduction {
  int histories = 0;      // from which a step is possible
  int lifted_states = 0;  // of those
  // Largest |Q*(history, a) - Q(lifted state, a)|, where the second is found by value iteration on
  // lifted states whose reward and successor are those of a random history among them.
  double largest_gap = 0.0;
  std::vector<double> first;  // Q(lifted state of the first history, a)
  // Share of the variance of Q*(history, a) that the best function of lifted state and action
  // leaves, all histories equally likely.
  double unexplained = 0.0;
};

// Histories with equal knowledge must have equally many steps and actions; InvariantError if not.
BellmanReduction ReduceTo(const Knowledge& knowledge, const std::vector<History>& histories,
                          double gamma);

}  // namespace msrl

#endif  // MSRL_INSPECT_BELLMAN_REDUCTION_H_
