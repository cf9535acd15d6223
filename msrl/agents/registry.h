// Agents by their ids.
#ifndef MSRL_AGENTS_REGISTRY_H_
#define MSRL_AGENTS_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/artefacts/artefact.h"
#include "msrl/core/config.h"
#include "msrl/core/registry.h"
#include "msrl/env/spec.h"

namespace msrl {

struct AgentEntry {
  std::string id;
  std::string description;
  bool discrete = false;  // which kinds of actions it can choose
  bool continuous = false;
  // The agent that it is without what it adds, to compare it with; empty: it adds to none.
  std::string over;
  // The return of an environment that is measured with it: it need not be run to be compared with.
  std::optional<MeasuredReturn> EnvSpec::*measured = nullptr;
  // Kinds of artefacts that it can start from.
  std::vector<std::string> takes;
  // What it must be set to, to hold such an artefact; comes before the user's settings.
  std::function<std::vector<std::string>(const ArtefactHeader& header)> settings_for;
  // Its critic gives the target "critic" of source episodes, if it can choose their actions; it is
  // a CriticAgent then. The first of several does.
  bool values_sources = false;
  // Settings with which a few hundred steps go through everything: small networks, a short warm-up,
  // a replay that wraps around. The contract tests use them; empty for agents that learn nothing.
  std::vector<std::string> quick;
  // Settings are "key=value". Equal arguments make equal agents.
  std::function<std::unique_ptr<Agent>(const EnvSpec& spec, std::span<const std::string> settings,
                                       std::uint64_t seed)>
      make;
  // All settings with their values, defaults where none is given. UserError as make.
  std::function<std::vector<ConfigField>(std::span<const std::string> settings)> options;
};

// The row of an agent with the constructor (const EnvSpec&, const Config&, std::uint64_t seed). If
// settings have a field "preset", it comes first, wherever it stands among them.
template <typename ConcreteAgent, typename Config>
AgentEntry MakeAgentEntry(std::string id, std::string description, bool discrete, bool continuous,
                          std::vector<std::string> quick = {}) {
  const auto configure = [](std::span<const std::string> settings) {
    Config config;
    // a preset is what all other settings change, wherever it stands among them
    const auto is_preset = [](const std::string& s) { return s.starts_with("preset="); };
    for (const bool preset : {true, false}) {
      for (const std::string& setting : settings) {
        if (is_preset(setting) == preset) SetField(config, setting);
      }
    }
    return config;
  };
  AgentEntry entry;
  entry.id = std::move(id);
  entry.description = std::move(description);
  entry.discrete = discrete;
  entry.continuous = continuous;
  entry.quick = std::move(quick);
  entry.make = [configure](const EnvSpec& spec, std::span<const std::string> settings,
                           std::uint64_t seed) -> std::unique_ptr<Agent> {
    return std::make_unique<ConcreteAgent>(spec, configure(settings), seed);
  };
  entry.options = [configure](std::span<const std::string> settings) {
    return ListFields(configure(settings));
  };
  return entry;
}

// entry.make, but a UserError if the agent can't choose actions of this kind.
std::unique_ptr<Agent> MakeAgent(const AgentEntry& entry, const EnvSpec& spec,
                                 std::span<const std::string> settings, std::uint64_t seed);

class AgentRegistry : public Registry<AgentEntry> {
 public:
  explicit AgentRegistry(std::vector<AgentEntry> entries = {})
      : Registry("agent", std::move(entries)) {}

  // MakeAgent of the row.
  std::unique_ptr<Agent> Make(std::string_view id, const EnvSpec& spec,
                              std::span<const std::string> settings, std::uint64_t seed) const {
    return MakeAgent(Find(id), spec, settings, seed);
  }
  // What is known of an agent that may be of another program: of such a one, nothing.
  AgentEntry FactsOf(std::string_view id) const { return Has(id) ? Find(id) : AgentEntry{}; }
};

// UserError that names those that do, unless the agent can start from artefacts of this kind.
void RequireTakes(const AgentRegistry& agents, const AgentEntry& entry, std::string_view kind);

// The list of all agents that come with msrl. A new one is a row here, and is tested by being
// listed.
const AgentRegistry& BuiltinAgents();

}  // namespace msrl

#endif  // MSRL_AGENTS_REGISTRY_H_
