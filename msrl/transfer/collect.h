// Source data: episodes of the four source families with a value for every state.
#ifndef MSRL_TRANSFER_COLLECT_H_
#define MSRL_TRANSFER_COLLECT_H_

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/agents/registry.h"
#include "msrl/core/config.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/env/behaviour.h"
#include "msrl/env/env_registry.h"
#include "msrl/env/instance.h"
#include "msrl/transfer/value_target.h"

namespace msrl {

// Ids of all source families, in the order of the registry.
std::vector<std::string> SourceFamilies(const EnvRegistry& envs);
// Those in a file, in the order in which they come.
std::vector<std::string> SourcesOf(const EpisodeFile& file);

struct CollectOptions {
  std::vector<std::string> sources = {};
  int episodes = 2000;
  std::uint64_t seed = 0;
  Split split = Split::kTrain;
  std::vector<ValueTarget> targets = {ValueTarget::kMonteCarlo, ValueTarget::kExpert,
                                      ValueTarget::kFitted};
  int critic_steps = 20'000;
  double dead_slots = 0.25;
  BehaviourMix behaviour = BehaviourMix::kSkills;
  std::vector<std::string> settings = {};
  // A folder for what is played so far, so that a killed collection goes on; empty: none. It may
  // be removed once Collect has returned.
  std::filesystem::path work = {};

  // All but the folder.
  template <typename V>
  void Fields(V&& visit) {
    visit("sources", sources, "source families; all if none is named");
    visit("episodes", episodes, "episodes of all sources together, in turn",
          Between(1, 10'000'000));
    visit("seed", seed, "seed of all instances and behaviours", NotNegative());
    visit("split", split, "which half of all layouts");
    visit("targets", targets, "values of every state; agents have to be trained for critic");
    visit("critic_steps", critic_steps, "for critic: training steps per family",
          Between(1, 100'000'000));
    visit("dead_slots", dead_slots, "share of episodes in which random geometry slots read zero",
          Between(0, 1));
    visit("behaviour", behaviour,
          "skills from worst to best, or switching between them within episodes, which does not "
          "give goals away");
    visit("settings", settings, "options of the sources, as FAMILY.KEY=VALUE");
  }

  // 16 digits: equal if the contents will be.
  std::string Fingerprint() const;
};

// Value targets, all in units of reward / reward_scale with the spec's discount:
//   mc       the discounted rest of the episode. Where it was truncated, the behaviour is taken to
//            go on as in its last 15 steps (their mean reward for ever).
//   expert   ExpertValue: V* of graphs and grids, the best of several roll-outs elsewhere.
//   fitted, regression   fitted evaluation of the behaviour, by these episodes (fitted_value.h).
//   critic   V(o) of an agent that learned on the family's training instances (critic_value.h); the
//            same agent for both splits of one seed.
// Equal options give equal contents; with fewer episodes, the first of them (except these two).
// Environments draw reward styles, action costs, scales and horizons anew for each episode, and
// MakeBehaviour the skill. UserError on impossible options. `progress` is called now and then in
// every stage, "episodes" and "critics", and at the stage's end with done == total.
using CollectProgress = std::function<void(std::string_view stage, int done, int total)>;
EpisodeFile Collect(const CollectOptions& options, const EnvRegistry& envs,
                    const AgentRegistry& agents, const CollectProgress& progress = {});

// values["mc"] as above.
void AddMonteCarlo(StoredEpisode& episode, double gamma);

// The discounted rest of an episode for each of its T+1 states, with the given value of the last.
Eigen::VectorXd DiscountedRest(const Eigen::VectorXd& rewards, double last_value, double gamma);

}  // namespace msrl

#endif  // MSRL_TRANSFER_COLLECT_H_
