// Random lifts, segments, graphs and coordinate changes for property tests. RapidCheck picks (and
// shrinks) the dimensions and the kind; our own stream fills in the numbers.
#ifndef MSRL_TESTING_GENERATORS_H_
#define MSRL_TESTING_GENERATORS_H_

#include <Eigen/Core>
#include <ostream>
#include <vector>

#include "msrl/core/gauge.h"
#include "msrl/core/graph.h"
#include "msrl/core/lift.h"
#include "msrl/core/rng.h"
#include "msrl/core/segment.h"

namespace msrl::testing {

// Drawn inside a RapidCheck property: the dimensions, one of the four lifts and a number stream.
struct Scene {
  Lift::Ptr lift;
  Index steps;   // T, often 0 or 1
  double scale;  // typical magnitude of states, 1e-3 to 1e3
  Rng rng;

  Eigen::VectorXd Vector(Index n);
  Eigen::MatrixXd Matrix(Index rows, Index columns);
  Segment RandomSegment() { return RandomSegment(steps); }
  Segment RandomSegment(Index horizon);
  // One-hot actions (q >= 1).
  Segment RandomOneHotSegment();
  // A segment that ends where it starts.
  Segment RandomCycle();
  // Singular values in [1/3, 3].
  Gauge RandomGauge();
  // `nodes` random nodes and `edges` random edges with one-hot actions (any vector if q = 0).
  Multigraph RandomGraph(int nodes, int edges);
  // Overlapping intervals that cover {0, ..., horizon-1}, in random order.
  std::vector<Interval> RandomCover(Index horizon, int extra);
};

struct SceneOptions {
  std::vector<LiftKind> kinds{LiftKind::kFull, LiftKind::kCompact, LiftKind::kCompactNoAction,
                              LiftKind::kCompactNoReward};
  int min_d = 1, max_d = 5;
  int min_q = 0, max_q = 4;
};
Scene DrawScene(const SceneOptions& options = {});
Scene DrawFullScene();    // the full lift
Scene DrawActionScene();  // a lift with an action channel, q >= 1
std::ostream& operator<<(std::ostream& out, const Scene& scene);

// Sum of outer products, written as plainly as possible: the independent second computation.
Eigen::MatrixXd NaiveMatrix(const Lift& lift, const Segment& segment);

}  // namespace msrl::testing

#endif  // MSRL_TESTING_GENERATORS_H_
