// How good an agent is: whole episodes, without learning.
#ifndef MSRL_RUN_EVALUATE_H_
#define MSRL_RUN_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/env/env.h"

namespace msrl {

struct EvalResult {
  std::vector<double> returns;
  std::vector<int> lengths;
  std::optional<int> successes;  // empty where success is no question

  double MeanReturn() const;
  double StdReturn() const;  // of the episodes, n - 1 in the denominator; 0 for one episode
  double MeanLength() const;
  double SuccessRate() const;
};

// Plays episodes in `env`, which is no training environment. Resets and policy noise come from the
// seed and the name alone: equal for all agents. Empty if `stop` said so in the middle.
std::optional<EvalResult> Evaluate(Agent& agent, Env& env, int episodes, std::uint64_t seed,
                                   std::string_view name, const std::function<bool()>& stop);

// (R - R_random) / (R_reference - R_random), where the spec knows both.
std::optional<double> NormalisedReturn(const EnvSpec& spec, double value);

}  // namespace msrl

#endif  // MSRL_RUN_EVALUATE_H_
