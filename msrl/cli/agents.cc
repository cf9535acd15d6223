#include <fmt/format.h>

#include <string>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/cli/commands.h"

namespace msrl::cli {
namespace {

struct ConfigOptions : OptionList {
  std::string& agent = Required("AGENT", "Agent");
  std::vector<std::string>& settings = Repeated("--set", "key=value: show with this setting");
};

void PrintAgents(const Program& program) {
  for (const AgentEntry& entry : program.registries.agents) {
    const char* actions = entry.discrete && entry.continuous ? "any actions"
                          : entry.discrete                   ? "discrete"
                                                             : "continuous";
    fmt::print("{:<12} {:<12} {}\n", entry.id, actions, entry.description);
    std::string more = entry.over.empty() ? "" : StrCat("over ", entry.over);
    for (const std::string& kind : entry.takes) {
      more += StrCat(more.empty() ? "" : ", ", "takes ", kind);
    }
    if (!more.empty()) fmt::print("{:<25} {}\n", "", more);
  }
  fmt::print("\n{} config AGENT shows the settings of one.\n", program.name);
}

void PrintConfig(const ConfigOptions& options, const Program& program) {
  const AgentEntry& entry = program.registries.agents.Find(options.agent);
  const std::vector<ConfigField> fields = entry.options(options.settings);
  fmt::print("# {}: {}\n[agent]\n{}", entry.id, entry.description,
             fields.empty() ? "# no settings\n" : ToToml(fields));
}

}  // namespace

void AddAgents(CLI::App& app, const Program& program) {
  app.add_subcommand("agents", "List the agents")->callback([&program] { PrintAgents(program); });
  AddCommand(app, program, "config", "Show the settings of an agent, as TOML", PrintConfig);
}

}  // namespace msrl::cli
