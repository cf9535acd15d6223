// What a value branch or a goal reading has to offer in a task, before anything is learned there:
// acts by the best of a few held actions, tried in the true simulator, as judged by F, by the
// rewards on the way, by both, by the distance to the goal as it is read from Z, or as it is.
#ifndef MSRL_INSPECT_CLIMB_H_
#define MSRL_INSPECT_CLIMB_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "msrl/core/config.h"
#include "msrl/env/env.h"
#include "msrl/value/goal_reading.h"
#include "msrl/value/value_branch.h"

namespace msrl {

enum class ClimbBy { kRandom, kRewards, kBranch, kBranchAndRewards, kReading, kDistance };
constexpr auto EnumNames(ClimbBy) {
  return Names("random", "rewards", "branch", "branch+rewards", "reading", "distance");  // a word
}

struct ClimbOptions {
  int episodes = 20;
  int candidates = 16;
  int horizon = 3;
  std::uint64_t seed = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("episodes", episodes, "episodes of each way of judging", Between(1, 1'000'000));
    visit("candidates", candidates, "actions tried at every step; discrete: all",
          Between(1, 10'000));
    visit("horizon", horizon, "steps that each is held", Between(1, 1000));
    visit("seed", seed, "of episodes and candidates", NotNegative());
  }
};

struct ClimbResult {
  double mean = 0.0;  // of the returns
  double standard_error = 0.0;
  double success = 0.0;  // share of episodes that end in success
  // Of a reading: the share of the variance of the goal's true offset that it tells, over all
  // steps but the first ten of an episode.
  double told = 0.0;
};

// `make` gives the task twice: once to play, once to try actions in. `network` is what `by` needs:
// a ValueBranch or a GoalReading; a reading also measures `told` however actions are chosen.
ClimbResult Climb(const std::function<std::unique_ptr<Env>()>& make, const MatrixNetwork& network,
                  ClimbBy by, const ClimbOptions& options);

}  // namespace msrl

#endif  // MSRL_INSPECT_CLIMB_H_
