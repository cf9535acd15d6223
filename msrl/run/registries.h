// Everything that is chosen by an id.
#ifndef MSRL_RUN_REGISTRIES_H_
#define MSRL_RUN_REGISTRIES_H_

#include <string>

#include "msrl/agents/registry.h"
#include "msrl/env/env_registry.h"
#include "msrl/transfer/pretrainer.h"

namespace msrl {

// Where a program's environments, agents and pretrainers come from. A value: BuiltinRegistries() of
// msrl/builtin has what comes with msrl; copy it and add rows of your own, or begin with none.
struct Registries {
  EnvRegistry envs;
  AgentRegistry agents;
  PretrainerRegistry pretrainers;
  std::string mujoco = {};  // the version that environments run on, for the records of runs
};

}  // namespace msrl

#endif  // MSRL_RUN_REGISTRIES_H_
