#include "msrl/policy_files/exported_policy.h"

#include <array>
#include <memory>

#include "msrl/core/check.h"
#include "msrl/run/run_spec.h"
#include "msrl/run/runner.h"

namespace msrl {
namespace {

constexpr int kSamples = 8;

}  // namespace

ExportedPolicy ExportPolicy(Agent& agent, const EnvSpec& spec, const std::string& agent_id) {
  ExportedPolicy exported{.policy = {},
                          .agent = agent_id,
                          .env = spec.id,
                          .version = std::string(BuildVersion()),
                          .observations = {},
                          .actions = {}};
  try {
    exported.policy = agent.ExportPolicy();
  } catch (const UserError& reason) {
    throw UserError(StrCat("agent '", agent_id, "' cannot be exported: ", reason.what()));
  }
  exported.observations.resize(spec.observation_size, kSamples);
  exported.actions.resize(exported.policy.action_size(), kSamples);
  Rng rng(0, "export");
  for (float& entry : exported.observations.reshaped()) entry = static_cast<float>(rng.Normal());
  const SegmentMatrix nothing(CompactLift(agent.lift_kind()));
  const std::array<double, kGeometrySize> origin{};
  ActionBuffer action(spec.action);
  for (int i = 0; i < kSamples; ++i) {
    const Eigen::VectorXd observation = exported.observations.col(i).cast<double>();
    const std::unique_ptr<Carry> carry = agent.MakeCarry();
    agent.Act(Turn{{EnvView(observation.data(), observation.size()),
                    EnvView(origin.data(), kGeometrySize), nothing},
                   *carry,
                   rng,
                   action},
              ActMode::kEvaluate);
    if (exported.policy.discrete) {
      exported.actions(0, i) = static_cast<float>(action.index());
    } else {
      for (Eigen::Index j = 0; j < exported.actions.rows(); ++j) {
        exported.actions(j, i) = static_cast<float>(action.values()[static_cast<std::size_t>(j)]);
      }
    }
  }
  return exported;
}

ExportedPolicy ExportPolicy(const RunDirectory& run, const Registries& registries,
                            const std::function<void(const std::string&)>& warn) {
  const RunSpec& spec = run.spec();
  const std::unique_ptr<Agent> agent = LoadAgent(run, registries, warn);
  return ExportPolicy(*agent, registries.envs.Make(spec.env, spec.env_settings)->spec(),
                      spec.agent);
}

}  // namespace msrl
