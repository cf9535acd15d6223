#include "msrl/agents/common/return_unit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace msrl {
namespace {

constexpr double kGamma = 0.9;

void AddEpisode(Replay& replay, const std::vector<double>& rewards, bool terminated) {
  const std::vector<double> state{0.0};
  const std::vector<float> action{0.0F};
  for (std::size_t t = 0; t < rewards.size(); ++t) {
    const bool last = t + 1 == rewards.size();
    replay.Add({.before = {.observation = state},
                .action = action,
                .reward = rewards[t],
                .terminated = last && terminated,
                .truncated = last && !terminated,
                .after = {.observation = state}});
  }
}

Replay MakeReplay() { return Replay({.capacity = 100, .observation_size = 1, .action_size = 1}); }

TEST(ReturnUnit, IsTheRangeOfDiscountedRests) {
  Replay replay = MakeReplay();
  AddEpisode(replay, {1.0, 0.0, 2.0}, /*terminated=*/true);
  const std::vector<double> long_rewards(20, 0.5);
  AddEpisode(replay, long_rewards, /*terminated=*/false);
  // what is cut off goes on as it was: 0.5 / (1 - gamma) in every state
  std::vector<double> returns(20, 5.0);
  returns.insert(returns.end(), {1.0 + 0.81 * 2.0, 0.9 * 2.0, 2.0});
  std::ranges::sort(returns);
  const auto quantile = [&](double share) {
    const double place = share * static_cast<double>(returns.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double above = below + 1 < returns.size() ? returns[below + 1] : returns[below];
    return returns[below] + (place - static_cast<double>(below)) * (above - returns[below]);
  };
  EXPECT_NEAR(ReturnUnit(replay, kGamma), quantile(0.95) - quantile(0.05), 1e-5);
}

// The mean of the last fifteen rewards goes on, also of an episode that is still played.
TEST(ReturnUnit, ATailIsTheMeanOfTheLastRewards) {
  Replay replay = MakeReplay();
  std::vector<double> rewards(5, 7.0);
  rewards.insert(rewards.end(), 15, 1.0);
  AddEpisode(replay, rewards, /*terminated=*/false);
  // fifteen returns of 10, then 16, 21.4, 26.26, 30.634 and 34.5706
  EXPECT_NEAR(ReturnUnit(replay, kGamma), 30.634 + 0.05 * (34.5706 - 30.634) - 10.0, 1e-4);
}

TEST(ReturnUnit, IsOneWhereNothingWasMet) {
  Replay replay = MakeReplay();
  EXPECT_EQ(ReturnUnit(replay, kGamma), 1.0);
  AddEpisode(replay, std::vector<double>(30, 0.0), /*terminated=*/false);
  EXPECT_EQ(ReturnUnit(replay, kGamma), 1.0);
}

}  // namespace
}  // namespace msrl
