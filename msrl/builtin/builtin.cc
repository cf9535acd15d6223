#include "msrl/builtin/builtin.h"

#include "msrl/env_list/env_list.h"

namespace msrl {

Registries BuiltinRegistries() { return {BuiltinEnvs(), BuiltinAgents()}; }

}  // namespace msrl
