#include "msrl/core/graph.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "msrl/core/check.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::DrawScene;
using testing::Scene;
using testing::Tol;

// The edge-indexed descriptor coincides with M(tau) for a trajectory's transitions, in any order.
RC_GTEST_PROP(GraphProperty, CoincidesWithTheTrajectory, ()) {
  Scene scene = DrawScene();
  const Segment segment = scene.RandomSegment();
  Multigraph graph = GraphOf(segment);
  RC_ASSERT(Describe(scene.lift, graph) == Describe(scene.lift, segment));
  std::reverse(graph.edges.begin(), graph.edges.end());
  const SegmentMatrix matrix = Describe(scene.lift, segment);
  RC_ASSERT(Describe(scene.lift, graph).Distance(matrix) <= Tol(1e-13) * matrix.Norm());
}

// Disjoint edge sets add.
RC_GTEST_PROP(GraphProperty, EdgesAdd, ()) {
  Scene scene = DrawScene();
  const Multigraph graph = scene.RandomGraph(*rc::gen::inRange(1, 6), *rc::gen::inRange(0, 12));
  Multigraph even{graph.nodes, {}};
  Multigraph odd{graph.nodes, {}};
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    (e % 2 == 0 ? even : odd).edges.push_back(graph.edges[e]);
  }
  const SegmentMatrix whole = Describe(scene.lift, graph);
  const SegmentMatrix sum = Describe(scene.lift, even) + Describe(scene.lift, odd);
  RC_ASSERT(whole.Distance(sum) <= Tol(1e-13) * whole.Norm());
  RC_ASSERT(whole.Horizon() == static_cast<std::int64_t>(graph.edges.size()));
}

TEST(Graph, RefusesEdgesToNowhere) {
  const auto lift = Lift::Make({LiftKind::kCompact, 1, 0, {}});
  Multigraph graph{Eigen::MatrixXd::Zero(1, 2), {}};
  graph.edges.push_back({0, 2, Eigen::VectorXd(0), 0.0});
  EXPECT_THROW(Describe(lift, graph), UserError);
  graph.edges[0].head = -1;
  EXPECT_THROW(Describe(lift, graph), UserError);
  graph.edges[0] = {0, 1, Eigen::VectorXd::Zero(1), 0.0};
  EXPECT_THROW(Describe(lift, graph), UserError);
}

}  // namespace
}  // namespace msrl
