// An agent in environments: the one loop of Act, Step and Advance, for training, for evaluation and
// for all who look on.
#ifndef MSRL_AGENTS_PLAY_H_
#define MSRL_AGENTS_PLAY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "msrl/agents/episode_tracker.h"
#include "msrl/agents/simulator.h"
#include "msrl/env/batch_env.h"

namespace msrl {

// One step in one environment; valid until its next episode begins.
struct PlayedStep {
  int env = 0;  // which
  const Experience& experience;
  EpisodeTracker& tracker;  // of the episode, after the step

  bool ended() const { return experience.terminated || experience.truncated; }
};

// Plays in all environments at once: one batch of actions, then one step of each.
class Lockstep {
 public:
  // Both must outlive this. No episode has begun; environment i draws its actions from policies[i].
  Lockstep(Agent& agent, BatchEnv& envs, std::vector<Rng> policies);

  // Begins the episode of this seed in environment i.
  void Begin(int i, std::uint64_t seed);
  // Whether there is an episode that has not ended.
  bool playing() const;
  // A step in every environment with an episode, then a visit of each, in their order. An episode
  // that has ended drops out, unless the visitor begins another one. No allocation.
  void Step(ActMode mode, const std::function<void(const PlayedStep&)>& visit);

  // Turns of environment i in training come with the simulator, which must outlive this.
  void Lend(int i, Simulator& simulator) { simulators_[static_cast<std::size_t>(i)] = &simulator; }

  // What later actions in environment i are drawn from.
  void set_policy(int i, const Rng& rng) { policies_[static_cast<std::size_t>(i)] = rng; }

  // The episode in environment i, between two steps.
  void Visit(int i, const Archive& state);

 private:
  Agent& agent_;
  BatchEnv& envs_;
  std::vector<Rng> policies_;
  std::vector<EpisodeTracker> trackers_;
  std::vector<ActionBuffer> actions_;
  std::vector<char> running_;
  std::vector<Turn> turns_;
  std::vector<Simulator*> simulators_;  // null: none
};

struct EpisodePlan {
  int episodes = 1;
  ActMode mode = ActMode::kEvaluate;
  std::uint64_t seed = 0;
  std::string name{};            // of the random streams: NAME/env, and NAME/policy/EPISODE
  std::function<bool()> stop{};  // asked before every step
};

// Plays whole episodes, as many at a time as there are environments. Their resets and the noise of
// their actions come from the seed, the name and the number of the episode alone. False if `stop`
// said so.
bool PlayEpisodes(Agent& agent, BatchEnv& envs, const EpisodePlan& plan,
                  const std::function<void(int episode, const PlayedStep&)>& visit);

}  // namespace msrl

#endif  // MSRL_AGENTS_PLAY_H_
