#include "msrl/inspect/bellman_reduction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/env/graph_motif.h"
#include "msrl/env/spec.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

constexpr double kGamma = 0.9;

std::vector<double> Flat(const Eigen::VectorXd& v) { return {v.begin(), v.end()}; }

// All entries of Z.
Knowledge MatrixOf() {
  return [](const History& h) {
    return std::vector<double>(h.z.packed().begin(), h.z.packed().end());
  };
}

Knowledge Together(const Knowledge& a, const Knowledge& b) {
  return [a, b](const History& h) {
    std::vector<double> all = a(h);
    for (const double value : b(h)) all.push_back(value);
    return all;
  };
}

// How long it has been, which (o, Z) knows by the last entry of Z.
std::vector<double> Time(const History& h) { return {static_cast<double>(h.edges.size())}; }

// V* of the graph itself with so many steps to go.
double GraphValue(const Multigraph& graph, int node, int steps) {
  double best = 0.0;
  bool first = true;
  for (const GraphEdge& edge : graph.edges) {
    if (steps == 0 || edge.tail != node) continue;
    const double q = edge.reward + kGamma * GraphValue(graph, edge.head, steps - 1);
    best = first ? q : std::max(best, q);
    first = false;
  }
  return best;
}

StateGraph SmallGraph(const char* motif, std::uint64_t seed) {
  GraphMotifConfig config;
  SetField(config, "motif", motif);
  SetField(config, "size", "5");
  GraphMotif env(config);
  env.Reset(seed);
  return env.Graph();
}

// The lifted states are fewer than the histories, and value iteration on them is exact. The place
// is in Z too: of a known start, the sum of the steps is where one is.
TEST(BellmanReduction, ValueIterationOnTheMatrixGivesTheGraphsValues) {
  constexpr int kSteps = 5;
  for (const char* motif : {"cycle", "path", "lollipop"}) {
    SCOPED_TRACE(motif);
    const StateGraph graph = SmallGraph(motif, 3);
    const std::vector<History> histories =
        ListHistories(CompactLift(), graph.graph, graph.starts[0], kSteps);
    const Knowledge place = [&](const History& h) { return Flat(graph.graph.nodes.col(h.node)); };

    const BellmanReduction matrix = ReduceTo(Together(place, MatrixOf()), histories, kGamma);
    EXPECT_LT(matrix.largest_gap, Tol(1e-12));
    EXPECT_LT(matrix.unexplained, Tol(1e-20));
    EXPECT_LT(matrix.lifted_states, matrix.histories);
    const BellmanReduction alone = ReduceTo(MatrixOf(), histories, kGamma);
    EXPECT_LT(alone.largest_gap, Tol(1e-12));

    // the process is Markov in its place, so that values are those of the graph
    const double best = *std::max_element(matrix.first.begin(), matrix.first.end());
    EXPECT_NEAR(best, GraphValue(graph.graph, graph.starts[0], kSteps), Tol(1e-12));

    // who knows the time alone cannot tell good places from bad ones
    const BellmanReduction blind = ReduceTo(Time, histories, kGamma);
    EXPECT_GT(blind.largest_gap, 1e-3);
    EXPECT_GT(blind.unexplained, 0.1);
  }
}

// Two loops, left and right of a hub. The tests say what is worth something.
struct Loops {
  Multigraph graph;
  Loops() {
    graph.nodes.setZero(kGeometrySize, 3);
    graph.nodes(0, 1) = -1.0;
    graph.nodes(0, 2) = 1.0;
    const auto add = [this](int tail, int head, int label) {
      Eigen::VectorXd action = Eigen::VectorXd::Zero(kActionCodeSize);
      action[label] = 1.0;
      graph.edges.push_back({.tail = tail, .head = head, .action = action, .reward = 0.0});
    };
    add(0, 1, 0);
    add(0, 2, 1);
    add(1, 0, 2);
    add(2, 0, 2);
  }
  std::vector<History> Histories() const { return ListHistories(CompactLift(), graph, 0, 5); }
};

// A reward that depends on the history, but only on what is additive of second order: on how often
// the left loop was walked. The observation does not show it, the matrix does.
TEST(BellmanReduction, TheMatrixRemembersWhatTheObservationHides) {
  const Loops loops;
  std::vector<History> histories = loops.Histories();
  for (History& h : histories) {
    const auto left = static_cast<double>(std::count(h.edges.begin(), h.edges.end(), 0));
    for (HistoryStep& step : h.steps) {
      if (histories[static_cast<std::size_t>(step.next)].node == 2) step.reward = left;
    }
  }
  const Knowledge place = [&](const History& h) {
    return std::vector<double>{static_cast<double>(h.node), Time(h)[0]};
  };
  const BellmanReduction observation = ReduceTo(place, histories, kGamma);
  EXPECT_GT(observation.largest_gap, 0.1);
  EXPECT_GT(observation.unexplained, 0.1);
  const BellmanReduction matrix = ReduceTo(Together(place, MatrixOf()), histories, kGamma);
  EXPECT_LT(matrix.largest_gap, Tol(1e-12));
  EXPECT_LT(matrix.unexplained, Tol(1e-20));
}

// Left before right is worth more than right before left: both have the same matrix, and the
// paper's assumption does not hold. The gap is found.
TEST(BellmanReduction, OrderIsBeyondTheMatrix) {
  const Loops loops;
  std::vector<History> histories = loops.Histories();
  for (History& h : histories) {
    if (h.edges.size() != 4) continue;
    const bool left_first = h.edges[0] == 0 && h.edges[2] == 1;
    for (HistoryStep& step : h.steps) step.reward = left_first ? 1.0 : 0.0;
  }
  const BellmanReduction matrix = ReduceTo(MatrixOf(), histories, kGamma);
  EXPECT_NEAR(matrix.largest_gap, 0.5, Tol(1e-12));
  EXPECT_GT(matrix.unexplained, 0.01);
  // whoever remembers the whole history is exact by definition
  const Knowledge everything = [](const History& h) {
    std::vector<double> edges(h.edges.begin(), h.edges.end());
    edges.push_back(Time(h)[0] + 100.0);
    return edges;
  };
  const BellmanReduction history = ReduceTo(everything, histories, kGamma);
  EXPECT_EQ(history.largest_gap, 0.0);
  EXPECT_EQ(history.lifted_states, history.histories);
}

TEST(BellmanReduction, StatesOfDifferentTimesAreNotOne) {
  const auto nothing = [](const History&) { return std::vector<double>{}; };
  EXPECT_THROW(ReduceTo(nothing, Loops().Histories(), kGamma), InvariantError);
}

}  // namespace
}  // namespace msrl
