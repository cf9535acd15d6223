#include "msrl/run/evaluate.h"

#include <cmath>
#include <numeric>
#include <string>

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

std::optional<EvalResult> Evaluate(Agent& agent, BatchEnv& envs, int episodes, std::uint64_t seed,
                                   std::string_view name, const std::function<bool()>& stop) {
  EvalResult result;
  result.returns.resize(static_cast<std::size_t>(episodes));
  result.lengths.resize(result.returns.size());
  if (envs.spec().has_success) result.successes = 0;
  const bool whole = PlayEpisodes(
      agent, envs, {.episodes = episodes, .seed = seed, .name = std::string(name), .stop = stop},
      [&](int episode, const PlayedStep& step) {
        if (!step.ended()) return;
        result.returns[static_cast<std::size_t>(episode)] = step.tracker.episode_return();
        result.lengths[static_cast<std::size_t>(episode)] = step.tracker.steps();
        if (result.successes && envs.env(step.env).Success().value_or(false)) ++*result.successes;
      });
  if (!whole) return std::nullopt;
  return result;
}

std::optional<double> NormalisedReturn(const EnvSpec& spec, double value) {
  if (!spec.random_return || !spec.reference_return) return std::nullopt;
  const double range = spec.reference_return->value - spec.random_return->value;
  if (range == 0.0) return std::nullopt;
  return (value - spec.random_return->value) / range;
}

}  // namespace msrl
