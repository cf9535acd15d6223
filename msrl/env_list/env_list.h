// The list of all environments that come with msrl. A new one is a row here, and is tested by being
// listed. What works with any list takes an EnvRegistry instead.
#ifndef MSRL_ENV_LIST_ENV_LIST_H_
#define MSRL_ENV_LIST_ENV_LIST_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "msrl/env/env_registry.h"

namespace msrl {

const EnvRegistry& BuiltinEnvs();

// BuiltinEnvs().Make, for tests and benchmarks.
inline std::unique_ptr<Env> MakeEnv(std::string_view id,
                                    std::span<const std::string> options = {}) {
  return BuiltinEnvs().Make(id, options);
}

}  // namespace msrl

#endif  // MSRL_ENV_LIST_ENV_LIST_H_
