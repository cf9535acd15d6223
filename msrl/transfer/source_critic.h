// Values by the critic of an agent that learned in the source family itself.
#ifndef MSRL_TRANSFER_SOURCE_CRITIC_H_
#define MSRL_TRANSFER_SOURCE_CRITIC_H_

#include <cstdint>
#include <functional>
#include <string_view>

#include "msrl/agents/registry.h"
#include "msrl/core/config.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/env/env_registry.h"

namespace msrl {

struct CriticValueOptions {
  int steps = 20'000;
  int hidden_width = 64;
  int batch_size = 64;
  std::uint64_t seed = 0;

  template <typename V>
  void Fields(V&& visit) {
    visit("steps", steps, "training steps per family", Between(1, 100'000'000));
    visit("hidden_width", hidden_width, "width of the hidden layers", Between(1, 8192));
    visit("batch_size", batch_size, "transitions per update", Positive());
    visit("seed", seed, "of training", NotNegative());
  }
};

// Adds values["critic"] to every episode: V(o) of each stored observation, 0 where the episode
// terminated. For each family the agent that values sources (AgentEntry) is trained from
// scratch on instances of the split "train", a new one in every episode, whatever the
// split of the file. So equal options value the states of all files with the same function of o.
//
// The agent sees what an episode's `observations` hold: neither the geometry (dead slots do not
// concern it) nor the matrix nor the facts. An observation does not tell the gain, the horizon or
// more of the reward style than whether there is a goal, so V(o) is an average over the instances
// that look the same. That of a stochastic policy is of its mode, with the entropy bonus of later
// steps.
//
// Does not depend on which other episodes and families the file holds. UserError if a family is
// unknown or its observations have another size; RunError if training diverges. `progress` is
// called now and then with the stage "critics" and the steps of all families so far.
void AddCriticValues(
    EpisodeFile& file, const EnvRegistry& envs, const AgentRegistry& agents,
    const CriticValueOptions& options = {},
    const std::function<void(std::string_view stage, int done, int total)>& progress = {});

}  // namespace msrl

#endif  // MSRL_TRANSFER_SOURCE_CRITIC_H_
