#include "msrl/builtin/builtin.h"

#include <mujoco/mujoco.h>

#include "msrl/env_list/env_list.h"

namespace msrl {

Registries BuiltinRegistries() {
  return {BuiltinEnvs(), BuiltinAgents(), BuiltinPretrainers(), mj_versionString()};
}

}  // namespace msrl
