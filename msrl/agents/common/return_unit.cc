#include "msrl/agents/common/return_unit.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "msrl/agents/common/percentiles.h"

namespace msrl {
namespace {

constexpr std::ptrdiff_t kTailSteps = 15;
constexpr double kLeast = 1e-3;

// Adds sum_k gamma^k r_{t+k} of every step of an episode.
void AddReturns(const std::vector<double>& rewards, bool terminated, double gamma,
                std::vector<float>& returns) {
  const std::ptrdiff_t tail = std::min(kTailSteps, std::ssize(rewards));
  double rest = terminated ? 0.0
                           : std::accumulate(rewards.end() - tail, rewards.end(), 0.0) /
                                 static_cast<double>(tail) / (1.0 - gamma);
  for (auto reward = rewards.rbegin(); reward != rewards.rend(); ++reward) {
    rest = *reward + gamma * rest;
    returns.push_back(static_cast<float>(rest));
  }
}

}  // namespace

double ReturnUnit(const Replay& replay, double gamma) {
  ReplayBatch step = replay.MakeBatch(1);
  std::vector<double> rewards;  // of the episode
  std::vector<float> returns;
  for (std::int64_t row = replay.first_row(); row < replay.end_row(); ++row) {
    if (!replay.IsStep(row)) continue;
    replay.Read(row, 0, step);
    rewards.push_back(static_cast<double>(step.reward[0]));
    if (replay.IsStep(row + 1)) continue;
    AddReturns(rewards, step.continues[0] == 0.0F, gamma, returns);
    rewards.clear();
  }
  if (returns.empty()) return 1.0;
  const double range =
      static_cast<double>(Quantile(returns, 0.95)) - static_cast<double>(Quantile(returns, 0.05));
  return range < kLeast ? 1.0 : range;
}

}  // namespace msrl
