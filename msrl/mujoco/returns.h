// Measured returns of the tasks, with the way they were measured.
#ifndef MSRL_MUJOCO_RETURNS_H_
#define MSRL_MUJOCO_RETURNS_H_

#include "msrl/env/spec.h"

namespace msrl {

// Fills random_return, still_return and reference_return of the spec with this id. `variant` names
// settings under which returns are others; one that was not measured leaves them empty.
void SetMeasuredReturns(EnvSpec& spec, std::string_view variant = "");

}  // namespace msrl

#endif  // MSRL_MUJOCO_RETURNS_H_
