#include "msrl/mujoco/returns.h"

#include "msrl/core/check.h"

namespace msrl {

void SetMeasuredReturns(EnvSpec& spec) { spec.random_return = {}; }

}  // namespace msrl
