#include <fmt/format.h>

#include <string>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/cli/commands.h"
#include "msrl/cli/fields_json.h"

namespace msrl::cli {
namespace {

struct ConfigOptions : OptionList {
  std::string& agent = Required("AGENT", "Agent");
  std::vector<std::string>& settings = Repeated("--set", "key=value: show with this setting");
  bool& json = Flag("--json", "As JSON");
};

struct AgentsOptions : OptionList {
  bool& json = Flag("--json", "As JSON");
};

void PrintAgents(const AgentsOptions& options, const Program& program) {
  if (options.json) {
    Json json = Json::array();
    for (const AgentEntry& entry : program.registries.agents) {
      json.push_back({{"id", entry.id},
                      {"description", entry.description},
                      {"discrete", entry.discrete},
                      {"continuous", entry.continuous},
                      {"over", entry.over.empty() ? Json() : Json(entry.over)},
                      {"takes", entry.takes}});
    }
    return PrintJson(json);
  }
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
  if (options.json) {
    return PrintJson({{"agent", entry.id},
                      {"description", entry.description},
                      {"settings", FieldsJson(fields)}});
  }
  fmt::print("# {}: {}\n[agent]\n{}", entry.id, entry.description,
             fields.empty() ? "# no settings\n" : ToToml(fields));
}

}  // namespace

void AddAgents(CLI::App& app, const Program& program) {
  AddCommand(app, program, "agents", "List the agents", PrintAgents);
  AddCommand(app, program, "config", "Show the settings of an agent, as TOML", PrintConfig);
}

}  // namespace msrl::cli
