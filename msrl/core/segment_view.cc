#include "msrl/core/segment_view.h"

#include "msrl/core/check.h"

namespace msrl {

SegmentView ViewOf(const Segment& segment) {
  return {{segment.x.data(), segment.x.rows(), segment.x.cols()},
          {segment.a.data(), segment.a.rows(), segment.a.cols()},
          {segment.r.data(), segment.r.size()}};
}

void RequireValid(const Lift& lift, const SegmentView& segment) {
  const Index steps = segment.horizon();
  if (segment.x.cols() != steps + 1 || segment.a.cols() != steps) {
    throw UserError(StrCat("a trajectory with ", steps, " rewards needs ", steps + 1,
                           " states and ", steps, " actions, got ", segment.x.cols(), " and ",
                           segment.a.cols()));
  }
  if (segment.x.rows() != lift.d() || segment.a.rows() != lift.q()) {
    throw UserError(StrCat("trajectory has states of dimension ", segment.x.rows(),
                           " and actions of dimension ", segment.a.rows(), ", the lift needs ",
                           lift.d(), " and ", lift.q()));
  }
  // a single state is never lifted; check it here
  if (steps == 0 && !segment.x.allFinite()) throw UserError("step 0: x is not finite");
}

Eigen::MatrixXd LiftedSteps(const Lift& lift, const SegmentView& segment) {
  RequireValid(lift, segment);
  Eigen::MatrixXd psi(lift.m(), segment.horizon());
  for (Index t = 0; t < segment.horizon(); ++t) {
    try {
      lift.Apply(segment.x.col(t), segment.a.col(t), segment.r[t], segment.x.col(t + 1),
                 psi.col(t));
    } catch (const UserError& error) {
      throw UserError(StrCat("step ", t, ": ", error.what()));
    }
  }
  return psi;
}

SegmentMatrix Describe(const Lift::Ptr& lift, const SegmentView& segment) {
  SegmentMatrix matrix(lift);
  matrix.AddSteps(LiftedSteps(*lift, segment));
  return matrix;
}

}  // namespace msrl
