#include "msrl/core/segment.h"

#include "msrl/core/check.h"
#include "msrl/core/segment_view.h"

namespace msrl {
namespace {

void RequireJunction(const Eigen::Ref<const Eigen::VectorXd>& exit,
                     const Eigen::Ref<const Eigen::VectorXd>& entry, double tolerance) {
  MSRL_CHECK(tolerance >= 0.0, "tolerance is ", tolerance);
  if (exit.size() != entry.size()) {
    throw UserError(StrCat("cannot compose: the first segment ends in ", exit.size(),
                           " dimensions, the second starts in ", entry.size()));
  }
  Index worst = 0;
  const double gap = (exit - entry).cwiseAbs().maxCoeff(&worst);
  if (!(gap <= tolerance)) {
    throw UserError(StrCat("cannot compose: the first segment ends at x[", worst,
                           "] = ", exit[worst], ", the second starts at ", entry[worst],
                           " (tolerance ", tolerance, ")"));
  }
}

}  // namespace

void RequireValid(const Lift& lift, const Segment& segment) { RequireValid(lift, ViewOf(segment)); }

Eigen::MatrixXd LiftedSteps(const Lift& lift, const Segment& segment) {
  return LiftedSteps(lift, ViewOf(segment));
}

SegmentMatrix Describe(const Lift::Ptr& lift, const Segment& segment) {
  return Describe(lift, ViewOf(segment));
}

Segment Restrict(const Segment& segment, Interval interval) {
  if (interval.begin < 0 || interval.end > segment.horizon() || interval.begin > interval.end) {
    throw UserError(StrCat("interval [", interval.begin, ", ", interval.end,
                           ") is not inside a segment of ", segment.horizon(), " transitions"));
  }
  const Index length = interval.length();
  return Segment{.x = segment.x.middleCols(interval.begin, length + 1),
                 .a = segment.a.middleCols(interval.begin, length),
                 .r = segment.r.segment(interval.begin, length)};
}

Segment Concatenate(const Segment& first, const Segment& second, double tolerance) {
  RequireJunction(first.exit(), second.entry(), tolerance);
  if (first.a.rows() != second.a.rows()) {
    throw UserError(
        StrCat("cannot compose: actions of dimension ", first.a.rows(), " and ", second.a.rows()));
  }
  Segment joined;
  joined.x.resize(first.x.rows(), first.x.cols() + second.horizon());
  joined.x << first.x, second.x.rightCols(second.horizon());
  joined.a.resize(first.a.rows(), first.horizon() + second.horizon());
  joined.a << first.a, second.a;
  joined.r.resize(first.horizon() + second.horizon());
  joined.r << first.r, second.r;
  return joined;
}

AnchoredMatrix Anchor(const Lift::Ptr& lift, const Segment& segment) {
  return {Describe(lift, segment), segment.entry(), segment.exit()};
}

AnchoredMatrix Compose(const AnchoredMatrix& first, const AnchoredMatrix& second,
                       double tolerance) {
  RequireJunction(first.exit, second.entry, tolerance);
  return {first.matrix + second.matrix, first.entry, second.exit};
}

}  // namespace msrl
