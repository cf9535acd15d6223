// The list of all environments. A new one is a row here, and is tested by being listed.
#ifndef MSRL_ENV_LIST_ENV_LIST_H_
#define MSRL_ENV_LIST_ENV_LIST_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/env/env.h"

namespace msrl {

struct EnvEntry {
  std::string id;
  bool is_source = false;  // samples instances; has the options `split` and `reward`
  // The environment without wrappers. Options are "key=value".
  std::function<std::unique_ptr<Env>(std::span<const std::string> options)> make;
  // The options with their defaults.
  std::function<std::vector<ConfigField>()> options;
};

const std::vector<EnvEntry>& Environments();

// UserError that names the nearest id.
const EnvEntry& FindEnvironment(std::string_view id);

// The environment inside a TimeLimit. UserError on an unknown id or option and on impossible
// values.
std::unique_ptr<Env> MakeEnv(std::string_view id, std::span<const std::string> options = {});

}  // namespace msrl

#endif  // MSRL_ENV_LIST_ENV_LIST_H_
