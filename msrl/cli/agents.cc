#include "msrl/cli/agents.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/registry.h"

namespace msrl::app {
namespace {

struct ConfigOptions {
  std::string agent;
  std::vector<std::string> settings;
};

void PrintAgents() {
  for (const AgentEntry& entry : Agents()) {
    const char* actions = entry.discrete && entry.continuous ? "any actions"
                          : entry.discrete                   ? "discrete"
                                                             : "continuous";
    fmt::print("{:<12} {:<12} {}\n", entry.id, actions, entry.description);
  }
  fmt::print("\nmsrl config AGENT shows the settings of one.\n");
}

void PrintConfig(const ConfigOptions& options) {
  const AgentEntry& entry = FindAgent(options.agent);
  const std::vector<ConfigField> fields = entry.options(options.settings);
  fmt::print("# {}: {}\n[agent]\n{}", entry.id, entry.description,
             fields.empty() ? "# no settings\n" : ToToml(fields));
}

}  // namespace

void AddAgents(CLI::App& app) {
  app.add_subcommand("agents", "List the agents")->callback(PrintAgents);
}

void AddConfig(CLI::App& app) {
  CLI::App* command = app.add_subcommand("config", "Show the settings of an agent, as TOML");
  const auto options = std::make_shared<ConfigOptions>();
  command->add_option("AGENT", options->agent, "Agent")->required();
  command->add_option("--set", options->settings, "key=value: show with this setting")
      ->allow_extra_args(false);
  command->callback([options] { PrintConfig(*options); });
}

}  // namespace msrl::app
