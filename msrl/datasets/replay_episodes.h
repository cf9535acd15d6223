// What a replay keeps, as the episodes that it was made of.
#ifndef MSRL_DATASETS_REPLAY_EPISODES_H_
#define MSRL_DATASETS_REPLAY_EPISODES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "msrl/datasets/episode_file.h"
#include "msrl/memory/replay.h"

namespace msrl {

// What the replay does not know of its own contents.
struct ReplayFacts {
  std::string env;
  std::uint64_t seed = 0;
  double reward_scale = 1.0;  // the replay's rewards are in this unit
  bool discrete = false;
  // The environment's observation within a state of the replay.
  int first = 0;
  int observation_size = 0;
};

struct ReplayEpisodes {
  std::vector<StoredEpisode> episodes;  // in the order in which they were lived
  // Steps of the oldest episode, which is left out because its beginning is no longer kept.
  std::int64_t forgotten_steps = 0;
  bool last_is_open = false;  // the newest episode was under way: it counts as truncated
};

// Rewards and observations are as exact as the replay's, which has single precision. Actions are
// cut to [-1, 1], as environments do. Geometry is there if the replay keeps it.
ReplayEpisodes EpisodesOf(const Replay& replay, const ReplayFacts& facts);

}  // namespace msrl

#endif  // MSRL_DATASETS_REPLAY_EPISODES_H_
