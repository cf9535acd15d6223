// Source episodes as the transfer baselines see them: aligned channels of every state, rewards in
// one unit, and one label per state that all methods are taught.
#ifndef MSRL_TRANSFER_SOURCE_SEQUENCES_H_
#define MSRL_TRANSFER_SOURCE_SEQUENCES_H_

#include <Eigen/Core>
#include <cstdint>
#include <string>
#include <vector>

#include "msrl/agents/common/aligned_channels.h"
#include "msrl/core/rng.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/transfer/value_target.h"

namespace msrl {

// One episode of T steps. Rewards and labels are in units of s_i, the scale of its task.
struct SourceSequence {
  int task = 0;              // index into SourceSequences::tasks()
  Eigen::MatrixXf channels;  // kChannels x (T+1): column t is of state t (aligned_channels.h)
  Eigen::RowVectorXf label;  // G_t of all T+1 states
  bool terminated = false;
  bool truncated = false;
  int goal_origin = 0;  // what kind of goal it has: a place (0) or a velocity (4)

  Index horizon() const { return label.size() - 1; }
  // x_t for t = 0..T, u_t and r_t for t = 0..T-1.
  auto x() const { return channels.topRows(kStateChannels); }
  auto u() const { return channels.block(kActionAt, 1, kActionChannels, horizon()); }
  auto r() const { return channels.block(kRewardAt, 1, 1, horizon()); }
};

// The label is the file's value `target` in the unit of the task:
//   G_t = values[target]_t / s_i,   r~_t = r_t / (reward_scale s_i),
//   s_i = max(1e-3, P95 - P5 of values[target] over all states of the task's training episodes).
// What a truncated episode would still have got is the business of the target: "mc" has the mean
// of the last rewards go on, "fitted" asks a regression.
class SourceSequences {
 public:
  // Training episodes. UserError if they lack the target or have another lift.
  SourceSequences(const EpisodeFile& train, ValueTarget target);
  // Held-out episodes of the same tasks, in the units of the training episodes; fitted values are
  // those of the training's regression. Episodes of other tasks are left out.
  SourceSequences(const EpisodeFile& held_out, ValueTarget target, const EpisodeFile& train,
                  const SourceSequences& training);

  const std::vector<std::string>& tasks() const { return tasks_; }
  double scale(int task) const { return scales_[static_cast<std::size_t>(task)]; }
  double gamma() const { return gamma_; }
  const std::vector<SourceSequence>& sequences() const { return sequences_; }
  // States that can be drawn.
  std::int64_t states() const;

  // A control: entries of all action codes change places, for all tasks and methods in the same
  // way. What is learned of actions then means others in a target.
  void PermuteActions();

 private:
  void Add(const EpisodeFile& file, ValueTarget target);

  std::vector<std::string> tasks_;
  std::vector<std::uint16_t> used_actions_;  // of each task (ChannelFacts)
  std::vector<double> scales_;
  double gamma_ = 0.99;
  std::vector<SourceSequence> sequences_;
};

// Draws states uniformly over tasks, then episodes of the task, then times: a task with many or
// long episodes counts no more than another.
class SourceSampler {
 public:
  // UserError if there is no episode of one of the tasks.
  SourceSampler(const SourceSequences& set, const std::vector<std::string>& tasks);

  struct Place {
    const SourceSequence* sequence = nullptr;
    Index time = 0;
  };
  // A state with at least `rest` steps after it; episodes that are too short count as drawn anew.
  // UserError if all are.
  Place Draw(Rng& rng, Index rest = 0) const;

 private:
  std::vector<std::vector<const SourceSequence*>> by_task_;
  Index longest_ = 0;  // steps of an episode
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_SOURCE_SEQUENCES_H_
