// A segment in memory that somebody else owns, e.g. NumPy: described where it lies.
#ifndef MSRL_CORE_SEGMENT_VIEW_H_
#define MSRL_CORE_SEGMENT_VIEW_H_

#include <Eigen/Core>

#include "msrl/core/lift.h"
#include "msrl/core/segment.h"
#include "msrl/core/segment_matrix.h"

namespace msrl {

// As Segment; the numbers must outlive it. Columns lie one after the other, so a row-major array
// with one state (action) per row is seen without a copy.
struct SegmentView {
  Eigen::Map<const Eigen::MatrixXd> x;  // d x (T+1), one state per column
  Eigen::Map<const Eigen::MatrixXd> a;  // q x T
  Eigen::Map<const Eigen::VectorXd> r;  // T

  Index horizon() const { return r.size(); }
};

SegmentView ViewOf(const Segment& segment);

// As the functions of a Segment, which are these.
void RequireValid(const Lift& lift, const SegmentView& segment);
Eigen::MatrixXd LiftedSteps(const Lift& lift, const SegmentView& segment);
SegmentMatrix Describe(const Lift::Ptr& lift, const SegmentView& segment);

}  // namespace msrl

#endif  // MSRL_CORE_SEGMENT_VIEW_H_
