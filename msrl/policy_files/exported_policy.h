// The policy of a run on its way to other programs.
#ifndef MSRL_POLICY_FILES_EXPORTED_POLICY_H_
#define MSRL_POLICY_FILES_EXPORTED_POLICY_H_

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <string>

#include "msrl/agents/feed_forward.h"
#include "msrl/run/run_directory.h"

namespace msrl {

struct ExportedPolicy {
  FeedForwardPolicy policy;
  std::string agent, env;
  std::string version;  // of msrl
  // What the agent itself does in a few observations, one column each: whoever reads the file can
  // try whether they do the same. A discrete action is its index.
  Eigen::MatrixXf observations, actions;
};

// What an agent made for this environment does in evaluations, with its samples. UserError with the
// reason if its policy is no function of the observation alone.
ExportedPolicy ExportPolicy(Agent& agent, const EnvSpec& spec, const std::string& agent_id);
// The same of the newest checkpoint of a run.
ExportedPolicy ExportPolicy(const RunDirectory& run, const Registries& registries,
                            const std::function<void(const std::string&)>& warn);

}  // namespace msrl

#endif  // MSRL_POLICY_FILES_EXPORTED_POLICY_H_
