// Source data: episodes of the four source families with a value for every state.
#ifndef MSRL_TRANSFER_COLLECT_H_
#define MSRL_TRANSFER_COLLECT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "msrl/data/episode_file.h"

namespace msrl {

// Ids of all source families, in the order of the registry.
std::vector<std::string> SourceFamilies();

struct CollectOptions {
  std::vector<std::string> sources;  // none: all families
  int episodes = 2000;               // of all sources together, in turn
  std::uint64_t seed = 0;
  std::string split = "train";  // or "held-out"
  // Any of "mc", "expert", "fitted".
  std::vector<std::string> targets = {"mc", "expert", "fitted"};
  double dead_slots = 0.25;  // share of episodes in which random geometry slots read zero
};

// Value targets, all in units of reward / reward_scale with the spec's discount:
//   mc       the discounted rest of the episode. Where it was truncated, the behaviour is taken to
//            go on as in its last 15 steps (their mean reward for ever).
//   expert   ExpertValue: V* of graphs and grids, the best of several roll-outs elsewhere.
//   fitted   fitted evaluation of the behaviour (fitted_value.h).
// Equal options give equal contents; with fewer episodes, the first of them (except "fitted").
// Environments draw reward styles, action costs, scales and horizons anew for each episode, and
// MakeBehaviour the skill. UserError on impossible options.
EpisodeFile Collect(const CollectOptions& options,
                    const std::function<void(int done, int total)>& progress = {});

// The discounted rest of an episode for each of its T+1 states, with the given value of the last.
Eigen::VectorXd DiscountedRest(const Eigen::VectorXd& rewards, double last_value, double gamma);

}  // namespace msrl

#endif  // MSRL_TRANSFER_COLLECT_H_
