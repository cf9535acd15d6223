// How good an agent is: whole episodes, without learning.
#ifndef MSRL_RUN_EVALUATE_H_
#define MSRL_RUN_EVALUATE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "msrl/agents/play.h"

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

// Plays episodes, in lockstep if there are several environments; none of them is one of training.
// Resets and policy noise come from the seed, the name and the number of the episode alone: equal
// for all agents. Empty if `stop` said so in the middle.
std::optional<EvalResult> Evaluate(Agent& agent, BatchEnv& envs, int episodes, std::uint64_t seed,
                                   std::string_view name, const std::function<bool()>& stop);

// (R - R_random) / (R_reference - R_random), where the spec knows both.
std::optional<double> NormalisedReturn(const EnvSpec& spec, double value);

}  // namespace msrl

#endif  // MSRL_RUN_EVALUATE_H_
