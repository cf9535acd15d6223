#include "msrl/core/obstruction.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// Edges whose lifts are equal are the same transition to the descriptor: one class per distinct
// psi.
struct EdgeClasses {
  std::vector<int> of_edge;
  std::vector<Eigen::VectorXd> psi;
};

EdgeClasses ClassifyEdges(const Lift& lift, const Multigraph& graph) {
  EdgeClasses classes;
  std::map<std::vector<double>, int> known;
  for (const GraphEdge& edge : graph.edges) {
    const Eigen::VectorXd psi = LiftEdge(lift, graph, edge);
    const std::vector<double> key(psi.begin(), psi.end());
    const auto [entry, is_new] = known.try_emplace(key, static_cast<int>(classes.psi.size()));
    if (is_new) classes.psi.push_back(psi);
    classes.of_edge.push_back(entry->second);
  }
  return classes;
}

using EdgeMultiset = std::vector<int>;  // sorted edge classes

SegmentMatrix MatrixOf(const Lift::Ptr& lift, const EdgeClasses& classes,
                       const EdgeMultiset& edges) {
  SegmentMatrix matrix(lift);
  for (const int edge : edges) matrix.AddStep(classes.psi[static_cast<std::size_t>(edge)]);
  return matrix;
}

}  // namespace

ReachableSet::ReachableSet(Lift::Ptr lift, const Multigraph& graph, std::span<const int> starts,
                           int max_horizon, std::size_t max_matrices)
    : lift_(std::move(lift)) {
  MSRL_CHECK_GE(max_horizon, 0);
  RequireValid(graph);
  const EdgeClasses classes = ClassifyEdges(*lift_, graph);
  std::vector<std::vector<std::size_t>> leaving(static_cast<std::size_t>(graph.nodes.cols()));
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    leaving[static_cast<std::size_t>(graph.edges[e].tail)].push_back(e);
  }

  // all (end node, edges used) of the walks of the present length
  std::set<std::pair<int, EdgeMultiset>> walks;
  for (const int start : starts) {
    MSRL_CHECK(start >= 0 && start < graph.nodes.cols(), "start node ", start);
    walks.insert({start, {}});
  }
  std::size_t total = 0;
  for (int horizon = 0; horizon <= max_horizon; ++horizon) {
    std::set<EdgeMultiset> multisets;
    for (const auto& [end, edges] : walks) multisets.insert(edges);
    total += multisets.size();
    if (total > max_matrices) {
      throw UserError(StrCat("more than ", max_matrices, " reachable matrices at horizon ", horizon,
                             "; ask for a smaller horizon"));
    }
    std::vector<SegmentMatrix>& matrices = by_horizon_.emplace_back();
    for (const EdgeMultiset& edges : multisets) matrices.push_back(MatrixOf(lift_, classes, edges));
    if (horizon == max_horizon) break;

    std::set<std::pair<int, EdgeMultiset>> longer;
    for (const auto& [end, edges] : walks) {
      for (const std::size_t e : leaving[static_cast<std::size_t>(end)]) {
        EdgeMultiset extended = edges;
        const int edge_class = classes.of_edge[e];
        extended.insert(std::upper_bound(extended.begin(), extended.end(), edge_class), edge_class);
        longer.insert({graph.edges[e].head, std::move(extended)});
      }
    }
    walks = std::move(longer);
  }
}

std::span<const SegmentMatrix> ReachableSet::At(std::int64_t horizon) const {
  if (horizon < 0 || horizon > max_horizon()) {
    throw UserError(StrCat("reachable matrices are enumerated up to horizon ", max_horizon(),
                           ", asked for ", horizon));
  }
  return by_horizon_[static_cast<std::size_t>(horizon)];
}

Obstruction ExactObstruction(const SegmentMatrix& candidate, const ReachableSet& reachable,
                             double tolerance) {
  RequireSameLift(*candidate.lift(), *reachable.lift(), "cannot score the candidate");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double entry = candidate.HorizonEntry();
  const double horizon = std::round(entry);
  if (horizon < 0.0 || std::abs(entry - horizon) > tolerance * (1.0 + std::abs(entry))) {
    return {kInfinity, ObstructionReason::kHorizonEntry};
  }
  const auto matrices = reachable.At(static_cast<std::int64_t>(horizon));
  if (matrices.empty()) return {kInfinity, ObstructionReason::kNoTrajectory};
  double nearest = kInfinity;
  for (const SegmentMatrix& matrix : matrices) {
    nearest = std::min(nearest, candidate.Distance(matrix));
  }
  const bool far = nearest > tolerance * (1.0 + candidate.Norm());
  return {nearest, far ? ObstructionReason::kPositiveDistance : ObstructionReason::kNone};
}

}  // namespace msrl
