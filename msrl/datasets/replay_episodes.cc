#include "msrl/datasets/replay_episodes.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {
namespace {

// The steps of the rows [begin, end); `end` is the last state.
StoredEpisode EpisodeOf(const Replay& replay, const ReplayFacts& facts, std::int64_t begin,
                        std::int64_t end) {
  const Index steps = end - begin;
  StoredEpisode episode;
  episode.env = facts.env;
  episode.seed = facts.seed;
  episode.reward_scale = facts.reward_scale;
  episode.discrete = facts.discrete;
  episode.observations.resize(facts.observation_size, steps + 1);
  episode.actions.resize(replay.config().action_size, steps);
  episode.rewards.resize(steps);
  const int geometry =
      replay.config().lift == nullptr ? 0 : static_cast<int>(replay.config().lift->d());
  episode.geometry.resize(geometry, steps + 1);
  for (Index t = 0; t <= steps; ++t) {
    const std::int64_t row = begin + t;
    const auto observation = replay.observation(row).subspan(
        static_cast<std::size_t>(facts.first), static_cast<std::size_t>(facts.observation_size));
    std::ranges::copy(observation, episode.observations.col(t).data());
    if (geometry > 0) {
      std::ranges::transform(replay.geometry(row), episode.geometry.col(t).data(),
                             [](double value) { return static_cast<float>(value); });
    }
    if (t == steps) break;
    std::ranges::transform(replay.action(row), episode.actions.col(t).data(), [&](float value) {
      return facts.discrete ? value : std::clamp(value, -1.0F, 1.0F);
    });
    episode.rewards[t] = facts.reward_scale * static_cast<double>(replay.reward(row));
  }
  episode.terminated = replay.IsTerminated(end - 1);
  episode.truncated = replay.IsTruncated(end - 1);
  return episode;
}

}  // namespace

ReplayEpisodes EpisodesOf(const Replay& replay, const ReplayFacts& facts) {
  MSRL_CHECK(facts.first >= 0 && facts.observation_size > 0 &&
             facts.first + facts.observation_size <= replay.config().observation_size);
  ReplayEpisodes made;
  std::int64_t row = replay.first_row();
  while (row < replay.end_row() && !replay.IsFirst(row)) {
    made.forgotten_steps += replay.IsStep(row) ? 1 : 0;
    ++row;
  }
  while (row < replay.end_row()) {
    std::int64_t end = row;
    while (replay.IsStep(end)) ++end;
    made.episodes.push_back(EpisodeOf(replay, facts, row, end));
    row = end + 1;
  }
  if (!made.episodes.empty()) {
    StoredEpisode& last = made.episodes.back();
    made.last_is_open = !last.terminated && !last.truncated;
    if (made.last_is_open) last.truncated = true;
  }
  return made;
}

}  // namespace msrl
