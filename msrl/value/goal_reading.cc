#include "msrl/value/goal_reading.h"

#include "msrl/core/check.h"

namespace msrl {

void ShownGoal::Apply(const Lift& lift, Eigen::Ref<Eigen::VectorXd> psi) const {
  const Index d = lift.d();
  for (int i = 0; i < 2; ++i) {
    psi[2 + i] = goal[i] * psi[lift.constant_offset()] - psi[origin + i];
    psi[d + 2 + i] = -psi[d + origin + i];
  }
}

void ShownGoal::Apply(SegmentMatrix& z) const {
  const Lift& lift = *z.lift();
  MSRL_CHECK(lift.kind() != LiftKind::kFull);
  const Index d = lift.d();
  for (int i = 0; i < 2; ++i) {
    z.ReplaceChannel(2 + i, goal[i], lift.constant_offset(), -1.0, origin + i);
    z.ReplaceChannel(d + 2 + i, 0.0, lift.constant_offset(), -1.0, d + origin + i);
  }
}

}  // namespace msrl
