#include "msrl/agents/registry.h"

#include <algorithm>

#include "msrl/agents/dbc/dbc.h"
#include "msrl/agents/dqn/dqn.h"
#include "msrl/agents/dreamer/dreamer.h"
#include "msrl/agents/dreamer/pretrained_world.h"
#include "msrl/agents/fixed/fixed.h"
#include "msrl/agents/host/host.h"
#include "msrl/agents/mbpo/mbpo.h"
#include "msrl/agents/msrl/msrl.h"
#include "msrl/agents/ppo/ppo.h"
#include "msrl/agents/sac/sac.h"
#include "msrl/agents/sf/sf_gpi.h"
#include "msrl/agents/subgraph/subgraph_gnn.h"
#include "msrl/agents/td3/td3.h"
#include "msrl/agents/tdmpc/pretrained_model.h"
#include "msrl/agents/tdmpc/tdmpc.h"
#include "msrl/agents/traj2value/traj2value_rnn.h"
#include "msrl/agents/traj2value/traj2value_transformer.h"
#include "msrl/agents/uvfa/uvfa.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

AgentEntry MeasuredAs(std::optional<MeasuredReturn> EnvSpec::*measured, AgentEntry entry) {
  entry.measured = measured;
  return entry;
}

AgentEntry ValuingSources(AgentEntry entry) {
  entry.values_sources = true;
  return entry;
}

AgentEntry Taking(std::string kind,
                  std::function<std::vector<std::string>(const ArtefactHeader&)> settings_for,
                  AgentEntry entry) {
  entry.takes = {std::move(kind)};
  entry.settings_for = std::move(settings_for);
  return entry;
}

// Matrix-space reinforcement learning over the agent `over`.
template <typename Base, typename BaseConfig>
AgentEntry MsrlEntry(std::string id, std::string over, std::string description, bool discrete,
                     bool continuous) {
  AgentEntry entry = MakeAgentEntry<MsrlOver<Base, BaseConfig>, MsrlConfig<BaseConfig>>(
      std::move(id), std::move(description), discrete, continuous,
      {"hidden_width=16", "batch_size=16", "replay_size=120", "random_steps=40", "branch_width=16",
       "library_size=50", "context_radius=5", "obstruction_min_each=2", "obstruction_min_updates=2",
       "plan=both", "plan_candidates=4", "model_width=8", "model_batch=16",
       "model_first_updates=10"});
  entry.over = std::move(over);
  entry.takes = {ValueBranch::kKind, GoalReading::kKind};
  entry.settings_for = SettingsForArtefact;
  return entry;
}

// A transfer baseline: the host with a module, which can start from artefacts of its kind.
template <typename Module>
AgentEntry HostEntry(std::string id, std::string description, std::vector<std::string> small) {
  std::vector<std::string> quick{"hidden_width=16",  "slot_size=8",     "batch_size=16",
                                 "replay_size=120",  "random_steps=40", "module_every=2",
                                 "module_windows=3", "encode_every=50", "calibration_episodes=1"};
  quick.insert(quick.end(), small.begin(), small.end());
  AgentEntry entry = MakeAgentEntry<HostOf<Module>, HostConfigFor<Module>>(
      std::move(id), std::move(description), /*discrete=*/false, /*continuous=*/true,
      std::move(quick));
  entry.takes = {Module::kKind};
  entry.settings_for = [](const ArtefactHeader& header) {
    std::vector<std::string> settings;
    for (const auto& [key, value] : header.shape) settings.push_back(StrCat(key, "=", value));
    return settings;
  };
  return entry;
}

}  // namespace

const AgentRegistry& BuiltinAgents() {
  static const AgentRegistry agents({
      MeasuredAs(&EnvSpec::random_return,
                 MakeAgentEntry<RandomAgent, FixedConfig>(
                     "random", "Uniform random actions: what the task gives without a policy",
                     /*discrete=*/true, /*continuous=*/true)),
      MeasuredAs(
          &EnvSpec::still_return,
          MakeAgentEntry<StillAgent, FixedConfig>(
              "still", "The zero action, or action 0: what the task gives for standing still",
              /*discrete=*/true, /*continuous=*/true)),
      ValuingSources(MakeAgentEntry<Dqn, DqnConfig>(
          "dqn", "Deep Q-learning with double targets",
          /*discrete=*/true, /*continuous=*/false,
          {"hidden_width=16", "batch_size=16", "replay_size=120", "random_steps=40"})),
      MakeAgentEntry<Td3, Td3Config>(
          "td3", "Twin delayed deterministic policy gradient",
          /*discrete=*/false, /*continuous=*/true,
          {"hidden_width=16", "batch_size=16", "replay_size=120", "random_steps=40"}),
      ValuingSources(MakeAgentEntry<Sac, SacConfig>(
          "sac", "Soft actor-critic with a learned temperature",
          /*discrete=*/false, /*continuous=*/true,
          {"hidden_width=16", "batch_size=16", "replay_size=120", "random_steps=40"})),
      MsrlEntry<Sac, SacConfig>("msrl", "sac", "Matrix-space reinforcement learning over SAC",
                                /*discrete=*/false, /*continuous=*/true),
      MsrlEntry<Td3, Td3Config>("msrl-td3", "td3", "Matrix-space reinforcement learning over TD3",
                                /*discrete=*/false, /*continuous=*/true),
      MsrlEntry<Dqn, DqnConfig>("msrl-dqn", "dqn", "Matrix-space reinforcement learning over DQN",
                                /*discrete=*/true, /*continuous=*/false),
      MakeAgentEntry<Mbpo, MbpoConfig>(
          "mbpo", "Soft actor-critic on short roll-outs of a learned ensemble",
          /*discrete=*/false, /*continuous=*/true,
          {"hidden_width=16", "batch_size=16", "replay_size=120", "random_steps=40",
           "updates_per_step=2", "model_members=3", "model_elites=2", "model_layers=2",
           "model_width=8", "model_batch=16", "model_every=25", "model_minibatches=20",
           "rollout_states=20", "rollout_last=3", "rollout_from=60", "rollout_until=120",
           "rollout_kept=2"}),
      MakeAgentEntry<Ppo, PpoConfig>(
          "ppo", "Proximal policy optimisation with generalised advantages",
          /*discrete=*/true, /*continuous=*/true,
          {"hidden_width=16", "rollout_steps=64", "minibatch_size=16", "epochs=2"}),
      Taking(kLatentModelKind, SettingsForModel,
             MakeAgentEntry<TdMpc, TdMpcConfig>(
                 "tdmpc", "TD-MPC2: planning in a learned latent model",
                 /*discrete=*/false, /*continuous=*/true,
                 {"encoder_width=16", "latent_groups=2", "model_width=16", "q_count=3", "bins=11",
                  "batch_size=8", "replay_size=120", "random_steps=40", "first_updates=5",
                  "update_every=1", "plan_samples=16", "plan_policy_samples=4", "plan_elites=4",
                  "plan_iterations=2"})),
      Taking(kWorldModelKind, SettingsForWorld,
             MakeAgentEntry<Dreamer, DreamerConfig>(
                 "dreamer",
                 "DreamerV3: an actor that learns in the imagination of a recurrent world model",
                 /*discrete=*/true, /*continuous=*/true,
                 {"deter=16", "blocks=2", "stoch=3", "classes=4", "hidden=12", "units=16",
                  "layers=1", "sequences=3", "sequence_length=6", "start_steps=3", "horizon=3",
                  "replay_size=120", "random_steps=40", "first_updates=2", "train_ratio=6"})),
      HostEntry<SfGpi>("sf-gpi", "Successor features of the sources' policies, in the slots of SAC",
                       {"features=5", "feature_width=8", "successor_width=12", "code_size=3",
                        "policies=2", "policy_width=8", "gpi_candidates=6", "refit_every=30"}),
      HostEntry<Uvfa>("uvfa", "A value of state and goal from the sources, in the slots of SAC",
                      {"stream_width=16", "stream_features=8"}),
      HostEntry<Traj2ValueRnn>(
          "traj2value-rnn",
          "A value of the last steps, read by a GRU on the sources, in the slots of SAC",
          {"token_width=8", "memory_width=8", "head_width=8"}),
      HostEntry<Traj2ValueTransformer>(
          "traj2value-transformer",
          "A value of the last steps, read by a transformer on the sources, in the slots of SAC",
          {"head_size=4", "heads=2", "blocks=2", "head_width=8"}),
      HostEntry<SubgraphGnn>(
          "subgraph-gnn",
          "A value of the graph of the last states, learned on the sources, in the slots of SAC",
          {"node_width=8", "layers=2", "head_width=8"}),
      HostEntry<Dbc>("dbc",
                     "A bisimulation metric and a value from the sources, in the slots of SAC",
                     {"encoder_width=8", "latent_size=6", "model_width=8", "head_width=8"}),
  });
  return agents;
}

void RequireTakes(const AgentRegistry& agents, const AgentEntry& entry, std::string_view kind) {
  if (std::find(entry.takes.begin(), entry.takes.end(), kind) != entry.takes.end()) return;
  std::string takers;
  for (const AgentEntry& other : agents) {
    if (std::find(other.takes.begin(), other.takes.end(), kind) == other.takes.end()) continue;
    takers += StrCat(takers.empty() ? "" : ", ", other.id);
  }
  throw UserError(StrCat("agent '", entry.id, "' takes no ", kind, " over",
                         takers.empty() ? "" : StrCat("; these do: ", takers)));
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
