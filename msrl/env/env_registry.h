// Environments by their ids.
#ifndef MSRL_ENV_ENV_REGISTRY_H_
#define MSRL_ENV_ENV_REGISTRY_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/core/registry.h"
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

// Of environments that have no options.
struct NoEnvOptions {
  template <typename V>
  void Fields(V&& /*visit*/) {}
};

// The row of an environment with the constructor (Config), or () if it has no options.
template <typename Concrete, typename Config = NoEnvOptions>
EnvEntry MakeEnvEntry(std::string id, bool is_source = false) {
  EnvEntry entry;
  entry.id = std::move(id);
  entry.is_source = is_source;
  entry.make = [](std::span<const std::string> options) -> std::unique_ptr<Env> {
    Config config;
    for (const std::string& option : options) SetField(config, option);
    if constexpr (std::is_same_v<Config, NoEnvOptions>) {
      return std::make_unique<Concrete>();
    } else {
      return std::make_unique<Concrete>(std::move(config));
    }
  };
  entry.options = [] { return ListFields(Config{}); };
  return entry;
}

// The environment inside a TimeLimit. UserError on an unknown option and on impossible values.
std::unique_ptr<Env> MakeEnv(const EnvEntry& entry, std::span<const std::string> options = {});

class EnvRegistry : public Registry<EnvEntry> {
 public:
  explicit EnvRegistry(std::vector<EnvEntry> entries = {})
      : Registry("environment", std::move(entries)) {}

  // MakeEnv of the row.
  std::unique_ptr<Env> Make(std::string_view id, std::span<const std::string> options = {}) const {
    return MakeEnv(Find(id), options);
  }
};

}  // namespace msrl

#endif  // MSRL_ENV_ENV_REGISTRY_H_
