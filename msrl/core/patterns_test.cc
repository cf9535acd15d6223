#include "msrl/core/patterns.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "msrl/core/check.h"
#include "msrl/core/graph.h"
#include "msrl/testing/generators.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::DrawActionScene;
using testing::DrawFullScene;
using testing::DrawScene;
using testing::NaiveMatrix;
using testing::Scene;
using testing::Tol;

// Both directions of every edge, with the same action and reward.
Multigraph Symmetrized(const Multigraph& graph) {
  Multigraph both = graph;
  for (const GraphEdge& edge : Reversed(graph).edges) both.edges.push_back(edge);
  return both;
}

Multigraph AnyGraph(Scene& scene) {
  return scene.RandomGraph(*rc::gen::inRange(2, 7), *rc::gen::inRange(0, 12));
}

// A graph that has a real displacement: the negative side of the identities below.
Multigraph OpenGraph(Scene& scene) {
  Multigraph graph = scene.RandomGraph(3, 2);
  graph.edges[0].tail = 0;
  graph.edges[0].head = 1;
  graph.edges[1].tail = 1;
  graph.edges[1].head = 2;
  return graph;
}

// Lemma "Block parity under reversal symmetry", and that it fails for a directed graph.
RC_GTEST_PROP(PatternProperty, ReversalSymmetricGraphsHaveNoEvenOddBlocks, ()) {
  Scene scene = DrawScene();
  RC_ASSERT(ReversalParity(Describe(scene.lift, Symmetrized(AnyGraph(scene)))).Holds(Tol(1e-12)));
  RC_ASSERT(!ReversalParity(Describe(scene.lift, OpenGraph(scene))).Holds(1e-6));
}

// The parity blocks of the paper, one by one, by independent sums (full lift).
RC_GTEST_PROP(PatternProperty, EveryParityBlockVanishesByName, ()) {
  Scene scene = DrawFullScene();
  const Multigraph graph = Symmetrized(AnyGraph(scene));
  const SegmentMatrix matrix = Describe(scene.lift, graph);
  const double scale = matrix.Trace();
  for (const char* even : {"c", "xi_c", "r", "1"}) {
    for (const char* odd : {"delta", "xi_delta"}) {
      RC_ASSERT(matrix.Block(even, odd).norm() <= Tol(1e-13) * scale);
    }
  }
  // surviving blocks are twice those of one representative per pair
  const std::size_t half = graph.edges.size() / 2;
  const Multigraph representatives{
      graph.nodes, {graph.edges.begin(), graph.edges.begin() + static_cast<std::ptrdiff_t>(half)}};
  const SegmentMatrix one = Describe(scene.lift, representatives);
  for (const char* a : {"c", "xi_c", "r", "1"}) {
    for (const char* b : {"c", "xi_c", "r", "1"}) {
      RC_ASSERT((matrix.Block(a, b) - 2.0 * one.Block(a, b)).norm() <= Tol(1e-13) * scale);
    }
  }
  for (const char* a : {"delta", "xi_delta"}) {
    for (const char* b : {"delta", "xi_delta"}) {
      RC_ASSERT((matrix.Block(a, b) - 2.0 * one.Block(a, b)).norm() <= Tol(1e-13) * scale);
    }
  }
}

// If actions or rewards differ between the directions, only the geometric cancellation is left.
RC_GTEST_PROP(PatternProperty, GeometricParityIgnoresLabels, ()) {
  Scene scene = DrawScene();
  Multigraph graph = Symmetrized(OpenGraph(scene));
  for (GraphEdge& edge : graph.edges) edge.reward = scene.rng.Normal();
  const SegmentMatrix matrix = Describe(scene.lift, graph);
  RC_ASSERT(GeometricReversalParity(matrix).Holds(Tol(1e-12)));
  if (scene.lift->HasBlock("r")) RC_ASSERT(!ReversalParity(matrix).Holds(Tol(1e-9)));
  RC_ASSERT(!GeometricReversalParity(Describe(scene.lift, OpenGraph(scene))).Holds(1e-6));
}

// Directed edge reversal: odd blocks change sign.
RC_GTEST_PROP(PatternProperty, ReversedGraphHasTheReversedMatrix, ()) {
  Scene scene = DrawScene();
  const Multigraph graph = AnyGraph(scene);
  const SegmentMatrix matrix = Describe(scene.lift, graph);
  const SegmentMatrix reversed = Describe(scene.lift, Reversed(graph));
  RC_ASSERT(EdgeReversal(matrix, reversed).Holds(Tol(1e-12)));
  // on the full lift, against the paper's list
  if (scene.lift->kind() == LiftKind::kFull) {
    const double scale = Tol(1e-13) * matrix.Trace();
    RC_ASSERT((reversed.Block("c", "delta") + matrix.Block("c", "delta")).norm() <= scale);
    RC_ASSERT((reversed.Block("delta", "1") + matrix.Block("delta", "1")).norm() <= scale);
    RC_ASSERT((reversed.Block("xi_delta", "r") + matrix.Block("xi_delta", "r")).norm() <= scale);
    RC_ASSERT((reversed.Block("c", "c") - matrix.Block("c", "c")).norm() <= scale);
    RC_ASSERT((reversed.Block("delta", "delta") - matrix.Block("delta", "delta")).norm() <= scale);
    RC_ASSERT((reversed.Block("xi_c", "xi_delta") + matrix.Block("xi_c", "xi_delta")).norm() <=
              scale);
  }
  const SegmentMatrix open = Describe(scene.lift, OpenGraph(scene));
  RC_ASSERT(!EdgeReversal(open, open).Holds(1e-6));
}

// Sequential paths: totals telescope; sums of midpoints and the skew part as the paper writes them.
RC_GTEST_PROP(PatternProperty, PathsTelescope, ()) {
  Scene scene = DrawScene();
  const Segment path = scene.RandomSegment();
  const SegmentMatrix matrix = Describe(scene.lift, path);
  RC_ASSERT(PathTelescoping(matrix, path.entry(), path.exit()).Holds(Tol(1e-12)));
  const Endpoints ends = RecoverEndpoints(matrix);
  if (ends.defined && ends.error_bound < 1e-10 * scene.scale) {
    RC_ASSERT(PathTelescoping(matrix).Holds(Tol(1e-9)));
  }
  const Eigen::VectorXd elsewhere = path.entry().array() + scene.scale;
  RC_ASSERT(!PathTelescoping(matrix, elsewhere, path.exit()).Holds(1e-6));

  const Index last = path.horizon();
  Eigen::VectorXd midpoints = Eigen::VectorXd::Zero(scene.lift->d());
  Eigen::MatrixXd skew = Eigen::MatrixXd::Zero(scene.lift->d(), scene.lift->d());
  for (Index i = 0; i <= last; ++i) {
    midpoints += (i == 0 || i == last ? 0.5 : 1.0) * path.x.col(i);
  }
  for (Index i = 1; i <= last; ++i) {
    skew += 0.5 * (path.x.col(i - 1) * path.x.col(i).transpose() -
                   path.x.col(i) * path.x.col(i - 1).transpose());
  }
  const SegmentMatrix form = MidpointForm(matrix);
  const std::string c = scene.lift->blocks()[0].name;
  const double scale = 1e-300 + path.x.squaredNorm();
  if (last > 0) {
    RC_ASSERT((form.Block(c, "1") - midpoints).norm() <=
              Tol(1e-13) * std::sqrt(scale * static_cast<double>(last)));
  }
  RC_ASSERT((Circulation(matrix) - skew).norm() <= Tol(1e-12) * scale);
}

// Two paths that don't meet are not one path (in few dimensions they can be).
RC_GTEST_PROP(PatternProperty, DisconnectedPiecesAreNotAPath, ()) {
  Scene scene = DrawScene({.min_d = 3});
  const SegmentMatrix sum =
      Describe(scene.lift, scene.RandomSegment(3)) + Describe(scene.lift, scene.RandomSegment(3));
  RC_ASSERT(!PathTelescoping(sum).Holds(1e-6));
}

// Directed cycles: no net transport, skew incidence; both orientations cancel.
RC_GTEST_PROP(PatternProperty, CyclesAreSkew, ()) {
  Scene scene = DrawScene();
  const Segment cycle = scene.RandomCycle();
  const SegmentMatrix matrix = Describe(scene.lift, cycle);
  RC_ASSERT(CycleSkewness(matrix).Holds(Tol(1e-12)));
  const SegmentMatrix both = Describe(scene.lift, Symmetrized(GraphOf(cycle)));
  RC_ASSERT(ReversalParity(both).Holds(Tol(1e-12)));
  RC_ASSERT(Circulation(both).norm() <= Tol(1e-12) * both.Trace());
  const SegmentMatrix reversed = Describe(scene.lift, Reversed(GraphOf(cycle)));
  RC_ASSERT((Circulation(reversed) + Circulation(matrix)).norm() <= Tol(1e-12) * matrix.Trace());
  RC_ASSERT(!CycleSkewness(Describe(scene.lift, OpenGraph(scene))).Holds(1e-6));
}

// Action-conditioned transport of a cycle vanishes if all edges carry the same action.
RC_GTEST_PROP(PatternProperty, ConstantActionFactorsOutOfACycle, ()) {
  Scene scene = DrawFullScene();
  Segment cycle = scene.RandomCycle();
  const Eigen::VectorXd action = scene.Vector(scene.lift->q());
  cycle.a.colwise() = action;
  const SegmentMatrix matrix = Describe(scene.lift, cycle);
  RC_ASSERT(matrix.Block("xi_delta", "1").norm() <= Tol(1e-12) * matrix.Trace());
}

// One-hot actions partition the blocks, against sums over the steps of each action.
RC_GTEST_PROP(PatternProperty, OneHotActionsPartition, ()) {
  Scene scene = DrawActionScene();
  const Segment segment = scene.RandomOneHotSegment();
  const SegmentMatrix matrix = Describe(scene.lift, segment);
  RC_ASSERT(ActionPartition(matrix).Holds(Tol(1e-12)));

  if (scene.lift->kind() == LiftKind::kFull) {
    const Index d = scene.lift->d();
    for (Index action = 0; action < scene.lift->q(); ++action) {
      Eigen::MatrixXd cc = Eigen::MatrixXd::Zero(d, d);
      Eigen::MatrixXd cd = Eigen::MatrixXd::Zero(d, d);
      for (Index t = 0; t < segment.horizon(); ++t) {
        if (segment.a(action, t) != 1.0) continue;
        const Eigen::VectorXd c = 0.5 * (segment.x.col(t) + segment.x.col(t + 1));
        const Eigen::VectorXd delta = segment.x.col(t + 1) - segment.x.col(t);
        cc += c * c.transpose();
        cd += c * delta.transpose();
      }
      const double scale = Tol(1e-13) * matrix.Trace();
      RC_ASSERT((matrix.Block("xi_c", "xi_c").block(action * d, action * d, d, d) - cc).norm() <=
                scale);
      RC_ASSERT((matrix.Block("c", "xi_delta").middleCols(action * d, d) - cd).norm() <= scale);
    }
  }
}

RC_GTEST_PROP(PatternProperty, OtherActionsDoNotPartition, ()) {
  Scene scene = DrawActionScene();
  const Segment segment = scene.RandomSegment(3 + scene.steps);
  RC_ASSERT(!ActionPartition(Describe(scene.lift, segment)).Holds(1e-6));
}

// End points from the matrix alone, with an error below the reported bound.
RC_GTEST_PROP(EndpointProperty, RecoversBothEnds, ()) {
  Scene scene = DrawScene();
  const Segment path = scene.RandomSegment();
  const Endpoints ends = RecoverEndpoints(Describe(scene.lift, path));
  if (path.horizon() == 0) {
    RC_ASSERT(!ends.defined);
    return;
  }
  RC_ASSERT(ends.defined);
  RC_ASSERT((ends.x_0 - path.entry()).norm() <= Tol(1.0) * ends.error_bound);
  RC_ASSERT((ends.x_T - path.exit()).norm() <= Tol(1.0) * ends.error_bound);
  const double distance = (path.exit() - path.entry()).norm();
  RC_ASSERT(std::abs(ends.amplification * distance - 1.5) <= 1e-9);
}

// The bound is of use: for ordinary paths it stays small.
TEST(Endpoints, BoundIsTightForOrdinaryPaths) {
  const auto lift = Lift::Make({LiftKind::kCompact, 8, 10, {}});
  Rng rng(0, "walk");
  Segment walk{Eigen::MatrixXd(8, 1001), Eigen::MatrixXd::Zero(10, 1000),
               Eigen::VectorXd::Zero(1000)};
  walk.x.col(0).setConstant(0.3);
  for (Index t = 0; t < 1000; ++t) {
    for (Index i = 0; i < 8; ++i) walk.x(i, t + 1) = walk.x(i, t) + 0.01 * rng.Normal();
  }
  const Endpoints ends = RecoverEndpoints(Describe(lift, walk));
  ASSERT_TRUE(ends.defined);
  EXPECT_LE((ends.x_T - walk.exit()).norm(), ends.error_bound);
  EXPECT_LE(ends.error_bound, 1e-9);
}

TEST(Endpoints, ClosedPathHasNone) {
  const auto lift = Lift::Make({LiftKind::kFull, 2, 0, {}});
  Segment square{Eigen::MatrixXd(2, 5), Eigen::MatrixXd(0, 4), Eigen::VectorXd::Zero(4)};
  square.x << 0, 1, 1, 0, 0, 0, 0, 1, 1, 0;
  const SegmentMatrix matrix = Describe(lift, square);
  EXPECT_FALSE(RecoverEndpoints(matrix).defined);
  EXPECT_TRUE(std::isinf(RecoverEndpoints(matrix).error_bound));
  EXPECT_TRUE(PathTelescoping(matrix).Holds());
  EXPECT_TRUE(CycleSkewness(matrix).Holds());
  // a unit square walked counter-clockwise circulates once round its area
  EXPECT_NEAR(Circulation(matrix)(0, 1), 1.0, 1e-12);
}

TEST(Patterns, ListFollowsTheLift) {
  const auto names = [](LiftKind kind) {
    std::vector<std::string> list;
    for (const auto& pattern : AllPatterns(SegmentMatrix(Lift::Make({kind, 2, 2, {}})))) {
      list.push_back(pattern.name);
    }
    return list;
  };
  EXPECT_EQ(names(LiftKind::kFull).size(), 5u);
  EXPECT_EQ(names(LiftKind::kCompactNoAction).size(), 4u);
  EXPECT_THROW(ActionPartition(SegmentMatrix(Lift::Make({LiftKind::kCompactNoAction, 2, 2, {}}))),
               UserError);
}

}  // namespace
}  // namespace msrl
