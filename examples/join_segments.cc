// Joining two segments is adding their matrices; overlapping windows glue.
#include <cstdio>

#include "msrl/core/gluing.h"
#include "msrl/core/segment.h"

int main() {
  // a point moves right for five steps, then up for five; the action is its velocity
  const auto lift = msrl::Lift::Make({msrl::LiftKind::kFull, /*d=*/2, /*q=*/2, /*slots=*/{}});
  msrl::Segment path{Eigen::MatrixXd::Zero(2, 11), Eigen::MatrixXd::Zero(2, 10),
                     Eigen::VectorXd::Zero(10)};
  for (int t = 0; t < 10; ++t) {
    path.a.col(t) = t < 5 ? Eigen::Vector2d(1, 0) : Eigen::Vector2d(0, 1);
    path.x.col(t + 1) = path.x.col(t) + 0.1 * path.a.col(t);
  }
  path.r[9] = 1.0;
  const msrl::SegmentMatrix whole = msrl::Describe(lift, path);

  // compose: the second segment must start where the first one ends
  const auto right = msrl::Anchor(lift, msrl::Restrict(path, {0, 5}));
  const auto up = msrl::Anchor(lift, msrl::Restrict(path, {5, 10}));
  const auto joined = msrl::Compose(right, up, /*tolerance=*/1e-9);

  // glue: three windows that overlap
  const std::vector<msrl::Interval> windows{{0, 4}, {2, 8}, {6, 10}};
  const msrl::SegmentMatrix glued = msrl::GlueIntervals(
      windows, path.horizon(),
      [&](msrl::Interval window) { return msrl::Describe(lift, msrl::Restrict(path, window)); });

  std::printf("horizon %ld, |M| = %.4f\n", static_cast<long>(whole.Horizon()), whole.Norm());
  std::printf("|M - composed| = %.1e, |M - glued| = %.1e\n", whole.Distance(joined.matrix),
              whole.Distance(glued));
  return whole.Distance(joined.matrix) < 1e-12 && whole.Distance(glued) < 1e-12 ? 0 : 1;
}
