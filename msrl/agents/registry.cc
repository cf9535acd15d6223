#include "msrl/agents/registry.h"

#include "msrl/agents/fixed/fixed.h"
#include "msrl/core/check.h"

namespace msrl {

const std::vector<AgentEntry>& Agents() {
  static const std::vector<AgentEntry> agents{
      MakeAgentEntry<RandomAgent, FixedConfig>(
          "random", "Uniform random actions: what the task gives without a policy",
          /*discrete=*/true, /*continuous=*/true),
      MakeAgentEntry<StillAgent, FixedConfig>(
          "still", "The zero action, or action 0: what the task gives for standing still",
          /*discrete=*/true, /*continuous=*/true),
  };
  return agents;
}

const AgentEntry& FindAgent(std::string_view id) {
  std::vector<std::string> known;
  for (const AgentEntry& entry : Agents()) {
    if (entry.id == id) return entry;
    known.push_back(entry.id);
  }
  throw UserError(StrCat("unknown agent '", id, "'", DidYouMean(id, known), " (see msrl agents)"));
}

std::unique_ptr<Agent> MakeAgent(const AgentEntry& entry, const EnvSpec& spec,
                                 std::span<const std::string> settings, std::uint64_t seed) {
  const bool discrete = spec.action.kind == ActionKind::kDiscrete;
  if (discrete ? !entry.discrete : !entry.continuous) {
    throw UserError(StrCat("agent '", entry.id, "' needs ", discrete ? "continuous" : "discrete",
                           " actions, those of '", spec.id, "' are ",
                           discrete ? "discrete" : "continuous"));
  }
  return entry.make(spec, settings, seed);
}

}  // namespace msrl
