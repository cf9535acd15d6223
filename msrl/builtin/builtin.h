// What comes with msrl.
#ifndef MSRL_BUILTIN_BUILTIN_H_
#define MSRL_BUILTIN_BUILTIN_H_

#include "msrl/run/registries.h"

namespace msrl {

// All environments, agents and pretrainers of this repository.
Registries BuiltinRegistries();

}  // namespace msrl

#endif  // MSRL_BUILTIN_BUILTIN_H_
