#include "envs.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "msrl/suite/registry.h"

namespace msrl::app {
namespace {

struct EnvsOptions {
  std::string id;
  std::vector<std::string> settings;
};

void PrintList() {
  for (const EnvEntry& entry : Environments()) {
    fmt::print("{:<20} {}\n", entry.id, entry.make({})->spec().description);
  }
  fmt::print("\nmsrl envs ID shows one with its options.\n");
}

void PrintOne(const EnvsOptions& options) {
  const EnvEntry& entry = FindEnvironment(options.id);
  const std::unique_ptr<Env> env = MakeEnv(options.id, options.settings);
  const EnvSpec& spec = env->spec();
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  fmt::print("{}: {}\n", entry.id, spec.description);
  fmt::print("  observation {} numbers, {} {} {}, at most {} steps, reward scale {}\n",
             spec.observation_size, spec.action.size, discrete ? "discrete" : "continuous",
             discrete ? "actions" : "action dimensions", spec.step_limit, spec.reward_scale);
  if (spec.random_return) {
    fmt::print("  random return {} ({})\n", spec.random_return->value, spec.random_return->origin);
  }
  if (spec.reference_return) {
    fmt::print("  reference return {} ({})\n", spec.reference_return->value,
               spec.reference_return->origin);
  }
  const std::vector<ConfigField> fields = entry.options();
  if (!fields.empty()) fmt::print("  options (--set key=value):\n");
  for (const ConfigField& field : fields) {
    fmt::print("    {:<18} {} (default {})\n", field.key, field.meaning, field.value);
  }
}

}  // namespace

void AddEnvs(CLI::App& app) {
  CLI::App* command = app.add_subcommand("envs", "List the environments, or show one");
  const auto options = std::make_shared<EnvsOptions>();
  command->add_option("ID", options->id, "Environment");
  command->add_option("--set", options->settings, "key=value: check an option")
      ->allow_extra_args(false);
  command->callback([options] {
    if (options->id.empty()) {
      PrintList();
    } else {
      PrintOne(*options);
    }
  });
}

}  // namespace msrl::app
