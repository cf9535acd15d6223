// Measured returns of the tasks, with the way they were measured.
#ifndef MSRL_MUJOCO_RETURNS_H_
#define MSRL_MUJOCO_RETURNS_H_

#include "msrl/env/spec.h"

namespace msrl {

// Fills random_return, still_return and reference_return of the spec with this id.
void SetMeasuredReturns(EnvSpec& spec);

}  // namespace msrl

#endif  // MSRL_MUJOCO_RETURNS_H_
