#include "msrl/env/env_registry.h"

#include "msrl/env/time_limit.h"

namespace msrl {

std::unique_ptr<Env> MakeEnv(const EnvEntry& entry, std::span<const std::string> options) {
  return std::make_unique<TimeLimit>(entry.make(options));
}

}  // namespace msrl
