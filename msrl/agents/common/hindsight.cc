#include "msrl/agents/common/hindsight.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {

Hindsight::Hindsight(const EnvSpec& spec, int goals, std::int64_t capacity, std::uint64_t seed)
    : task_(spec.goal_task),
      goal_entries_(spec.goal_entries),
      reward_scale_(spec.reward_scale),
      share_(goals / (1.0 + goals)),
      rng_(seed, "hindsight"),
      shown_(goal_entries_.size()) {
  if (task_ == nullptr) {
    throw UserError(StrCat("her: '", spec.id,
                           "' has no goal that could be another one in what the policy sees"));
  }
  achieved_.Allocate(capacity, 2);
  last_.Allocate(capacity, 1);
  other_reward_.Allocate(capacity, 1);
  other_end_.Allocate(capacity, 1);
}

void Hindsight::Observe(const Experience& experience, const Replay& replay) {
  const std::int64_t row = replay.end_row() - 2;
  if (replay.end_row() - end_ == 2) {
    // an episode begins, so that the end of the one before is known
    for (std::int64_t r = std::max(newest_episode_, replay.first_row()); r < row; ++r) {
      last_.data[Slot(r)] = row - 1;
    }
    newest_episode_ = row;
  }
  end_ = replay.end_row();

  const Vec2 before = task_->Achieved(experience.before.observation);
  const Vec2 after = task_->Achieved(experience.after.observation);
  const Vec2 desired = task_->Desired(experience.before.observation);
  std::ranges::copy(before, achieved_.Row(Slot(row)).begin());
  std::ranges::copy(after, achieved_.Row(Slot(row + 1)).begin());
  const Outcome outcome = task_->Judge(after, desired);
  other_reward_.data[Slot(row)] = experience.reward - outcome.reward;
  other_end_.data[Slot(row)] = experience.terminated && !outcome.terminated ? 1 : 0;
  // of the newest state there is nothing to say yet: checkpoints hold all of it
  other_reward_.data[Slot(row + 1)] = 0.0;
  other_end_.data[Slot(row + 1)] = 0;
}

void Hindsight::ShowGoal(const Vec2& achieved, const Vec2& goal,
                         Eigen::Ref<Eigen::VectorXf> observation) {
  task_->Show(achieved, goal, shown_);
  for (std::size_t i = 0; i < shown_.size(); ++i) {
    observation[goal_entries_[i]] = static_cast<float>(shown_[i]);
  }
}

void Hindsight::Relabel(const Replay& replay, ReplayBatch& batch) {
  // samples are independent of each other, so that the first columns are as good as any
  const auto count =
      static_cast<Eigen::Index>(std::lround(share_ * static_cast<double>(batch.size())));
  for (Eigen::Index column = 0; column < count; ++column) {
    const std::int64_t row = batch.row[static_cast<std::size_t>(column)];
    const std::int64_t later = row + 1 + rng_.Index(LastRow(row, replay) - row);
    const Vec2 goal = Achieved(later);
    const Vec2 after = Achieved(row + 1);
    ShowGoal(Achieved(row), goal, batch.observation.col(column));
    ShowGoal(after, goal, batch.next_observation.col(column));
    const Outcome outcome = task_->Judge(after, goal);
    const double reward = other_reward_.data[Slot(row)] + outcome.reward;
    batch.reward[column] = static_cast<float>(reward / reward_scale_);
    const bool ends = outcome.terminated || other_end_.data[Slot(row)] != 0;
    batch.continues[column] = ends ? 0.0F : 1.0F;
  }
}

void Hindsight::FindEpisodes(const Replay& replay) {
  end_ = replay.end_row();
  newest_episode_ = end_;
  std::int64_t last = end_ - 1;
  for (std::int64_t row = end_ - 1; row >= replay.first_row(); --row) {
    if (!replay.IsStep(row)) last = row;
    if (last == end_ - 1) newest_episode_ = row;
    last_.data[Slot(row)] = last;
  }
}

void Hindsight::Visit(const Archive& state, const Replay& replay) {
  const std::int64_t used = std::min(replay.end_row(), achieved_.rows);
  achieved_.Visit(state, "achieved", used);
  other_reward_.Visit(state, "other_reward", used);
  other_end_.Visit(state, "other_end", used);
  state.Random("random", rng_);
  if (state.loading()) FindEpisodes(replay);
}

}  // namespace msrl
