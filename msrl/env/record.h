// Play as data: what the descriptor sees of an episode.
#ifndef MSRL_ENV_RECORD_H_
#define MSRL_ENV_RECORD_H_

#include <cstdint>

#include "msrl/core/segment.h"
#include "msrl/env/behaviour.h"

namespace msrl {

struct Recording {
  // x: geometry, a: action codes, r: reward / reward_scale.
  Segment segment;
  // ExpertValue of each of the T+1 states, if asked for. 0 where the episode has terminated.
  Eigen::VectorXd expert_value;
  bool terminated = false;
  bool truncated = false;
};

// Plays at most `max_steps` steps on from the present state; stops at the end of the episode.
Recording Record(Env& env, Behaviour& behaviour, int max_steps, bool with_expert_value = false);

// Resets the environment and plays a whole episode.
Recording RecordEpisode(Env& env, Behaviour& behaviour, std::uint64_t seed,
                        bool with_expert_value = false);

}  // namespace msrl

#endif  // MSRL_ENV_RECORD_H_
