#include "msrl/core/obstruction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>

#include "msrl/core/check.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::Scene;
using testing::Tol;

std::vector<int> AllNodes(const Multigraph& graph) {
  std::vector<int> nodes(static_cast<std::size_t>(graph.nodes.cols()));
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<int>(i);
  return nodes;
}

// All walks with exactly `horizon` edges, by plain recursion: the independent enumeration.
std::vector<std::vector<GraphEdge>> BruteForceWalks(const Multigraph& graph,
                                                    const std::vector<int>& starts, int horizon) {
  std::vector<std::vector<GraphEdge>> walks;
  std::vector<GraphEdge> walk;
  const std::function<void(int)> extend = [&](int node) {
    if (static_cast<int>(walk.size()) == horizon) {
      walks.push_back(walk);
      return;
    }
    for (const GraphEdge& edge : graph.edges) {
      if (edge.tail != node) continue;
      walk.push_back(edge);
      extend(edge.head);
      walk.pop_back();
    }
  };
  for (const int start : starts) extend(start);
  return walks;
}

// Theorem "Obstruction": a realizable matrix has score 0 and is never certified.
RC_GTEST_PROP(ObstructionProperty, NeverCertifiesARealizableMatrix, ()) {
  Scene scene = DrawScene();
  const Multigraph graph = scene.RandomGraph(*rc::gen::inRange(1, 5), *rc::gen::inRange(0, 7));
  const std::vector<int> starts = AllNodes(graph);
  const ReachableSet reachable(scene.lift, graph, starts, 4);
  for (int horizon = 0; horizon <= 4; ++horizon) {
    const auto walks = BruteForceWalks(graph, starts, horizon);
    RC_ASSERT(walks.empty() == reachable.At(horizon).empty());
    if (walks.empty()) continue;
    const auto& walk =
        walks[static_cast<std::size_t>(scene.rng.Index(static_cast<std::int64_t>(walks.size())))];
    const SegmentMatrix matrix = Describe(scene.lift, Multigraph{graph.nodes, walk});
    const Obstruction obstruction = ExactObstruction(matrix, reachable);
    RC_ASSERT(!obstruction.certified());
    RC_ASSERT(obstruction.score <= Tol(1e-12) * (1.0 + matrix.Norm()));
  }
}

// The score is the distance to the nearest walk, found by brute force.
RC_GTEST_PROP(ObstructionProperty, ScoreIsTheDistanceToTheNearestWalk, ()) {
  Scene scene = DrawScene();
  const Multigraph graph = scene.RandomGraph(3, *rc::gen::inRange(1, 5));
  const std::vector<int> starts{0};
  const int horizon = *rc::gen::inRange(0, 4);
  const ReachableSet reachable(scene.lift, graph, starts, horizon);
  const SegmentMatrix candidate = Describe(scene.lift, scene.RandomSegment(horizon));
  double nearest = std::numeric_limits<double>::infinity();
  for (const auto& walk : BruteForceWalks(graph, starts, horizon)) {
    nearest =
        std::min(nearest, Describe(scene.lift, Multigraph{graph.nodes, walk}).Distance(candidate));
  }
  const Obstruction obstruction = ExactObstruction(candidate, reachable);
  if (std::isinf(nearest)) {
    RC_ASSERT(std::isinf(obstruction.score));
    RC_ASSERT(obstruction.reason == ObstructionReason::kNoTrajectory);
  } else {
    RC_ASSERT(std::abs(obstruction.score - nearest) <= Tol(1e-12) * (1.0 + candidate.Norm()));
    RC_ASSERT(obstruction.certified() == (nearest > 1e-9 * (1.0 + candidate.Norm())));
  }
}

// M_11 that is not a nonnegative integer needs no search.
RC_GTEST_PROP(ObstructionProperty, HorizonEntryIsACertificate, ()) {
  Scene scene = DrawScene();
  const Multigraph graph = scene.RandomGraph(3, 5);
  const ReachableSet reachable(scene.lift, graph, AllNodes(graph), 2);
  SegmentMatrix candidate = Describe(scene.lift, scene.RandomSegment(1));
  const double horizon = *rc::gen::element(-1.0, -3.0, 0.5, 1.25, 7.9);
  candidate *= horizon;
  const Obstruction obstruction = ExactObstruction(candidate, reachable);
  RC_ASSERT(obstruction.reason == ObstructionReason::kHorizonEntry);
  RC_ASSERT(std::isinf(obstruction.score));
}

Multigraph OneWayCorridor() {
  // 0 -> 1 -> 2, no way back
  Multigraph graph{Eigen::MatrixXd(1, 3), {}};
  graph.nodes << 0, 1, 2;
  const Eigen::VectorXd right = Eigen::VectorXd::Ones(1);
  graph.edges = {{0, 1, right, 0.0}, {1, 2, right, 0.0}};
  return graph;
}

TEST(Obstruction, CertifiesAPassageTheWrongWay) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  const Multigraph graph = OneWayCorridor();
  const std::vector<int> starts{0, 1, 2};
  const ReachableSet reachable(lift, graph, starts, 3);
  const SegmentMatrix backward = Describe(lift, Reversed(graph));
  const Obstruction obstruction = ExactObstruction(backward, reachable);
  EXPECT_EQ(obstruction.reason, ObstructionReason::kPositiveDistance);
  EXPECT_GT(obstruction.score, 0.1);
}

TEST(Obstruction, EmptySetMeansInfinity) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  const Multigraph graph = OneWayCorridor();
  const std::vector<int> starts{0};
  const ReachableSet reachable(lift, graph, starts, 3);
  EXPECT_TRUE(reachable.At(3).empty());
  Segment segment{Eigen::MatrixXd::Zero(1, 4), Eigen::MatrixXd::Zero(1, 3),
                  Eigen::VectorXd::Zero(3)};
  const Obstruction obstruction = ExactObstruction(Describe(lift, segment), reachable);
  EXPECT_EQ(obstruction.reason, ObstructionReason::kNoTrajectory);
  EXPECT_TRUE(std::isinf(obstruction.score));
}

TEST(Obstruction, SameMultisetOfStepsIsInvisible) {
  // Walks of the right steps that don't connect, 0->1 and 1->2 from start 1, have the matrix of a
  // walk from start 0: no converse is claimed.
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  const Multigraph graph = OneWayCorridor();
  const std::vector<int> starts{0};
  const ReachableSet reachable(lift, graph, starts, 2);
  Multigraph swapped = graph;
  std::swap(swapped.edges[0], swapped.edges[1]);
  EXPECT_FALSE(ExactObstruction(Describe(lift, swapped), reachable).certified());
}

TEST(Obstruction, RefusesWhatWasNotEnumerated) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  const Multigraph graph = OneWayCorridor();
  const std::vector<int> starts{0};
  const ReachableSet reachable(lift, graph, starts, 1);
  EXPECT_THROW(ExactObstruction(Describe(lift, graph), reachable), UserError);
  const SegmentMatrix other(Lift::Make({LiftKind::kFull, 1, 2, {}}));
  EXPECT_THROW(ExactObstruction(other, reachable), UserError);
}

TEST(Obstruction, RefusesAnExplodingSet) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 1, {}});
  Multigraph graph{Eigen::MatrixXd(1, 2), {}};
  graph.nodes << 0, 1;
  for (int k = 0; k < 6; ++k) {
    graph.edges.push_back({k % 2, (k + 1) % 2, Eigen::VectorXd::Constant(1, k), 0.0});
  }
  const std::vector<int> starts{0};
  EXPECT_THROW(ReachableSet(lift, graph, starts, 12, 100), UserError);
}

TEST(Obstruction, WalksWithTheSameEdgesAreKeptOnce) {
  const auto lift = Lift::Make({LiftKind::kFull, 1, 0, {}});
  // two loops at one node: walks of length n differ by counts only
  Multigraph graph{Eigen::MatrixXd(1, 1), {}};
  graph.nodes << 3;
  graph.edges = {{0, 0, Eigen::VectorXd(0), 0.0}, {0, 0, Eigen::VectorXd(0), 1.0}};
  const std::vector<int> starts{0};
  const ReachableSet reachable(lift, graph, starts, 6);
  for (int horizon = 0; horizon <= 6; ++horizon) {
    EXPECT_EQ(reachable.At(horizon).size(), static_cast<std::size_t>(horizon + 1));
  }
}

}  // namespace
}  // namespace msrl
