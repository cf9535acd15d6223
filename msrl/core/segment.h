// Trajectory segments: finite consecutive transitions, already embedded (x = phi(o), a =
// xi(action)).
#ifndef MSRL_CORE_SEGMENT_H_
#define MSRL_CORE_SEGMENT_H_

#include <Eigen/Core>

#include "msrl/core/lift.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

// The transition indices {begin, ..., end - 1}.
struct Interval {
  Index begin = 0;
  Index end = 0;
  Index length() const { return end - begin; }
  bool operator==(const Interval&) const = default;
};

// T transitions; T = 0 is a single state.
struct Segment {
  Eigen::MatrixXd x;  // d x (T+1), one state per column
  Eigen::MatrixXd a;  // q x T
  Eigen::VectorXd r;  // T

  Index horizon() const { return r.size(); }
  auto entry() const { return x.col(0); }
  auto exit() const { return x.col(x.cols() - 1); }
};

// UserError unless the sizes fit each other and the lift and all values are acceptable to it; names
// the step and the channel.
void RequireValid(const Lift& lift, const Segment& segment);

// The lifted steps, m x T.
Eigen::MatrixXd LiftedSteps(const Lift& lift, const Segment& segment);

// M(segment). Validates, lifts and accumulates in one blocked pass.
SegmentMatrix Describe(const Lift::Ptr& lift, const Segment& segment);

// The transitions with indices in the interval. UserError if it leaves {0, ..., T-1} or is
// reversed.
Segment Restrict(const Segment& segment, Interval interval);

// first * second: valid if the exit of the first is the entry of the second, each coordinate within
// `tolerance`. The junction state is the first's. UserError otherwise.
Segment Concatenate(const Segment& first, const Segment& second, double tolerance);

// A matrix with the two states that composition has to match: what a library stores of a segment.
struct AnchoredMatrix {
  SegmentMatrix matrix;
  Eigen::VectorXd entry;
  Eigen::VectorXd exit;
};

AnchoredMatrix Anchor(const Lift::Ptr& lift, const Segment& segment);

// The composed descriptor M1 + M2 (paper, Theorem "Composition"); UserError if the junction does
// not match within `tolerance` or the lifts differ.
AnchoredMatrix Compose(const AnchoredMatrix& first, const AnchoredMatrix& second, double tolerance);

}  // namespace msrl

#endif  // MSRL_CORE_SEGMENT_H_
