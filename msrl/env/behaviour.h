// Scripted behaviour from anti-expert through random to expert.
#ifndef MSRL_ENV_BEHAVIOUR_H_
#define MSRL_ENV_BEHAVIOUR_H_

#include <cstdint>

#include "msrl/core/enum_names.h"
#include "msrl/core/rng.h"
#include "msrl/env/env.h"

namespace msrl {

struct BehaviourConfig {
  // 1 expert, 0 random, -1 anti-expert; |skill| is the share of steps on which the expert (or the
  // anti-expert) acts.
  double skill = 0.0;
  // Mean number of steps for which a random action is kept. Uniform actions drawn anew at every
  // step go nowhere in tasks with inertia.
  double persistence = 1.0;
  // Mean number of steps for which a skill is kept, before one of -1 to 1 is drawn; 0: for ever.
  double switching = 0.0;
};

// The mixtures for source data.
enum class BehaviourMix {
  kSkills,     // every skill occurs, so that value targets vary; one for each episode
  kSwitching,  // random, or now towards the goal and now away: motion alone does not tell the goal
};
constexpr auto EnumNames(BehaviourMix) { return Names("skills", "switching"); }
BehaviourConfig DrawBehaviour(Rng& rng, BehaviourMix mix = BehaviourMix::kSkills);

// Acts in one environment. Does not allocate after construction, apart from what an expert prepares
// at the first step of an episode.
class Behaviour {
 public:
  // UserError if the environment has no expert and skill is not 0. The environment must outlive
  // this.
  Behaviour(Env& env, const BehaviourConfig& config, const Rng& rng);

  const BehaviourConfig& config() const { return config_; }
  // Call at the start of an episode if it is to be mixed anew.
  void set_config(const BehaviourConfig& config);
  // The action for the present state; valid until the next call.
  Action Act();

 private:
  Env& env_;
  BehaviourConfig config_;
  Rng rng_;
  ActionBuffer random_;
  ActionBuffer scripted_;
  bool keep_random_ = false;
};

// A behaviour with a drawn config.
Behaviour MakeBehaviour(Env& env, Rng& rng, BehaviourMix mix = BehaviourMix::kSkills);

// The discounted sum of reward / reward_scale under the expert from the present state, without a
// time limit: V* of graphs and grids, the best of several scripted roll-outs elsewhere. UserError
// if the environment has no expert.
double ExpertValue(Env& env);

struct EpisodeResult {
  double total_reward = 0.0;
  int steps = 0;
  bool terminated = false;
  bool success = false;  // at the last step
};

// Resets the environment and plays one episode.
EpisodeResult PlayEpisode(Env& env, Behaviour& behaviour, std::uint64_t seed);

}  // namespace msrl

#endif  // MSRL_ENV_BEHAVIOUR_H_
