#include "msrl/core/obstruction.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include "msrl/core/graph.h"
#include "python/src/bindings.h"

namespace msrl::python {
namespace {

using Nodes = std::vector<int>;

Eigen::MatrixXd ColumnsOf(const Numbers<2>& rows) {
  return Eigen::Map<const Eigen::MatrixXd>(rows.data(), static_cast<Index>(rows.shape(1)),
                                           static_cast<Index>(rows.shape(0)));
}

Multigraph MakeGraph(const Numbers<2>& nodes, const Nodes& tails, const Nodes& heads,
                     const Numbers<2>& actions, const Numbers<1>& rewards) {
  const std::size_t edges = tails.size();
  if (heads.size() != edges || actions.shape(0) != edges || rewards.size() != edges) {
    throw UserError(StrCat("a graph has as many tails, heads, actions and rewards as edges, got ",
                           edges, ", ", heads.size(), ", ", actions.shape(0), " and ",
                           rewards.size()));
  }
  Multigraph graph{ColumnsOf(nodes), {}};
  const Eigen::MatrixXd codes = ColumnsOf(actions);
  for (std::size_t e = 0; e < edges; ++e) {
    graph.edges.push_back(
        {tails[e], heads[e], codes.col(static_cast<Index>(e)), rewards.data()[e]});
  }
  RequireValid(graph);
  return graph;
}

void RequireFits(const Lift& lift, const Multigraph& graph) {
  const Index q = graph.edges.empty() ? lift.q() : graph.edges.front().action.size();
  if (graph.nodes.rows() != lift.d() || q != lift.q()) {
    throw UserError(StrCat("graph has nodes of dimension ", graph.nodes.rows(),
                           " and actions of dimension ", q, ", the lift needs ", lift.d(), " and ",
                           lift.q()));
  }
}

std::string_view ReasonName(ObstructionReason reason) {
  switch (reason) {
    case ObstructionReason::kNone:
      return "none";
    case ObstructionReason::kHorizonEntry:
      return "horizon-entry";
    case ObstructionReason::kNoTrajectory:
      return "no-trajectory";
    case ObstructionReason::kPositiveDistance:
      return "positive-distance";
  }
  MSRL_CHECK(false, "no such reason");
  return {};
}

}  // namespace

void BindObstruction(nb::module_& module) {
  using namespace nb::literals;  // NOLINT(google-build-using-namespace)

  nb::class_<Multigraph>(module, "Multigraph", "A directed multigraph whose edges are transitions.")
      .def(
          "__init__",
          [](Multigraph* self, const Numbers<2>& nodes, const Nodes& tails, const Nodes& heads,
             const Numbers<2>& actions, const Numbers<1>& rewards) {
            new (self) Multigraph(MakeGraph(nodes, tails, heads, actions, rewards));
          },
          "nodes"_a, "tails"_a, "heads"_a, "actions"_a, "rewards"_a,
          "nodes: |V| x d, a state per row; tails, heads: indices of nodes; actions: |E| x q; "
          "rewards: |E|.")
      .def(
          "describe",
          [](const Multigraph& graph, const std::shared_ptr<Lift>& lift) {
            RequireFits(*lift, graph);
            return Describe(lift, graph);
          },
          "lift"_a, "The sum over the edges of psi psi^T.");

  nb::class_<ReachableSet>(
      module, "ReachableSet",
      "The matrices of all walks of up to `max_horizon` edges from the start nodes of a graph.")
      .def(
          "__init__",
          [](ReachableSet* self, const std::shared_ptr<Lift>& lift, const Multigraph& graph,
             const Nodes& starts, int max_horizon, std::size_t max_matrices) {
            RequireFits(*lift, graph);
            for (const int start : starts) {
              if (start < 0 || start >= graph.nodes.cols()) {
                throw UserError(
                    StrCat("start ", start, " is no node: there are ", graph.nodes.cols()));
              }
            }
            if (max_horizon < 0) throw UserError(StrCat("max_horizon is ", max_horizon));
            const nb::gil_scoped_release release;
            new (self) ReachableSet(lift, graph, starts, max_horizon, max_matrices);
          },
          "lift"_a, "graph"_a, "starts"_a, "max_horizon"_a, "max_matrices"_a = 2'000'000,
          "UserError past `max_matrices`.")
      .def_prop_ro("max_horizon", &ReachableSet::max_horizon)
      .def(
          "at",
          [](const ReachableSet& reachable, std::int64_t horizon) {
            if (horizon < 0 || horizon > reachable.max_horizon()) {
              throw UserError(
                  StrCat("horizon ", horizon, " is not in 0 to ", reachable.max_horizon()));
            }
            const auto matrices = reachable.At(horizon);
            return std::vector<SegmentMatrix>(matrices.begin(), matrices.end());
          },
          "horizon"_a, "The matrices of this horizon.");

  nb::class_<Obstruction>(module, "Obstruction", "Whether a matrix is certainly not realizable.")
      .def_ro("score", &Obstruction::score, "Distance from the nearest reachable matrix.")
      .def_prop_ro(
          "reason", [](const Obstruction& found) { return ReasonName(found.reason); },
          "'none', 'horizon-entry', 'no-trajectory' or 'positive-distance'.")
      .def_prop_ro("certified", &Obstruction::certified,
                   "True: certainly not realizable. False claims nothing.")
      .def("__repr__", [](const Obstruction& found) {
        return StrCat("Obstruction(score ", found.score, ", reason ", ReasonName(found.reason),
                      ")");
      });
  module.def("exact_obstruction", &ExactObstruction, "candidate"_a, "reachable"_a,
             "tolerance"_a = 1e-9,
             "How far `candidate` is from all reachable matrices of its horizon; `tolerance`, "
             "relative to 1 + its norm, separates rounding from a distance.");
}

}  // namespace msrl::python
