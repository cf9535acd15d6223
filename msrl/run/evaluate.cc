#include "msrl/run/evaluate.h"

#include <cmath>
#include <numeric>
#include <string>

#include "msrl/agents/episode_tracker.h"

namespace msrl {
namespace {

template <typename T>
double Mean(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double EvalResult::MeanReturn() const { return Mean(returns); }
double EvalResult::MeanLength() const { return Mean(lengths); }
double EvalResult::SuccessRate() const {
  return static_cast<double>(*successes) / static_cast<double>(returns.size());
}

double EvalResult::StdReturn() const {
  if (returns.size() < 2) return 0.0;
  const double mean = MeanReturn();
  double sum = 0.0;
  for (const double value : returns) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(returns.size() - 1));
}

std::optional<EvalResult> Evaluate(Agent& agent, Env& env, int episodes, std::uint64_t seed,
                                   std::string_view name, const std::function<bool()>& stop) {
  Rng resets(seed, std::string(name) + "/env");
  Rng policy(seed, std::string(name) + "/policy");
  EpisodeTracker tracker(env.spec(), CompactLift(agent.lift_kind()));
  ActionBuffer action(env.spec().action);
  EvalResult result;
  if (env.spec().has_success) result.successes = 0;
  for (int episode = 0; episode < episodes; ++episode) {
    env.Reset(resets.NextU64());
    tracker.Begin(env);
    bool running = true;
    while (running) {
      if (stop && stop()) return std::nullopt;
      agent.Act(tracker.situation(), ActMode::kEvaluate, policy, action);
      const StepResult step = env.Step(action.view());
      tracker.Advance(action.view(), step, env);
      running = !step.terminated && !step.truncated;
    }
    result.returns.push_back(tracker.episode_return());
    result.lengths.push_back(tracker.steps());
    if (result.successes && env.Success().value_or(false)) ++*result.successes;
  }
  return result;
}

std::optional<double> NormalisedReturn(const EnvSpec& spec, double value) {
  if (!spec.random_return || !spec.reference_return) return std::nullopt;
  const double range = spec.reference_return->value - spec.random_return->value;
  if (range == 0.0) return std::nullopt;
  return (value - spec.random_return->value) / range;
}

}  // namespace msrl
