// Hindsight experience replay (Andrychowicz et al. 2017): steps towards one goal, learned from as
// steps towards what was reached later in the same episode.
#ifndef MSRL_AGENTS_COMMON_HINDSIGHT_H_
#define MSRL_AGENTS_COMMON_HINDSIGHT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "msrl/agents/agent.h"
#include "msrl/env/goal_task.h"
#include "msrl/memory/replay.h"

namespace msrl {

// Stands beside a replay and remembers, exactly, what another goal needs to know of its states and
// steps. The replay itself stays as it was experienced.
class Hindsight {
 public:
  // `goals` relabelled samples for each one that stays as it was. UserError if the task has no
  // other goals (EnvSpec::goal_task).
  Hindsight(const EnvSpec& spec, int goals, std::int64_t capacity, std::uint64_t seed);

  // After the replay has taken in the step. No allocation.
  void Observe(const Experience& experience, const Replay& replay);
  // Gives the first columns of a batch that was sampled from the replay a goal that was reached
  // after them: what is shown of it, reward and end become what the environment would have said. No
  // allocation.
  void Relabel(const Replay& replay, ReplayBatch& batch);

  // The newest state of the row's episode.
  std::int64_t LastRow(std::int64_t row, const Replay& replay) const {
    return row >= newest_episode_ ? replay.end_row() - 1 : last_.data[Slot(row)];
  }

  // `replay` has been read already.
  void Visit(const Archive& state, const Replay& replay);

 private:
  std::int64_t Slot(std::int64_t row) const { return row % achieved_.rows; }
  Vec2 Achieved(std::int64_t row) const {
    return Eigen::Map<const Vec2>(achieved_.Row(Slot(row)).data());
  }
  void ShowGoal(const Vec2& achieved, const Vec2& goal, Eigen::Ref<Eigen::VectorXf> observation);
  void FindEpisodes(const Replay& replay);

  std::shared_ptr<const GoalTask> task_;
  std::vector<int> goal_entries_;
  double reward_scale_;
  double share_;
  Rng rng_;
  std::int64_t newest_episode_ = 0;  // its first row
  std::int64_t end_ = 0;             // the replay's

  // of states
  LazyTable<double> achieved_;
  LazyTable<std::int64_t> last_;  // of the row's episode, unless it is the newest one
  // of steps
  LazyTable<double> other_reward_;     // what the goal has no part in
  LazyTable<std::uint8_t> other_end_;  // terminated, but not by the goal

  std::vector<double> shown_;  // workspace
};

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_HINDSIGHT_H_
