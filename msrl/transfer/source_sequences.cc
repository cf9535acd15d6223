#include "msrl/transfer/source_sequences.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "msrl/agents/common/percentiles.h"
#include "msrl/core/check.h"
#include "msrl/env/instance.h"
#include "msrl/transfer/collect.h"
#include "msrl/transfer/fitted_value.h"

namespace msrl {
namespace {

constexpr double kLeastScale = 1e-3;

void RequireLift(const EpisodeFile& file) {
  const std::string lift = CompactLift()->id().ToString();
  if (file.lift_id == lift && file.action_code_size == kActionCodeSize) return;
  throw UserError(StrCat("the episodes are for lift ", file.lift_id, " and action codes of ",
                         file.action_code_size, ", this is lift ", lift, " and ", kActionCodeSize));
}

const Eigen::VectorXf& ValuesOf(const StoredEpisode& episode, ValueTarget target) {
  const auto found = episode.values.find(std::string(EnumName(target)));
  if (found != episode.values.end()) return found->second;
  throw UserError(StrCat("the episodes have no '", EnumName(target),
                         "' values; collect them with --targets ", EnumName(target)));
}

// Entries of the code that some action of the task has: those of its dimensions, or up to the last
// action that was ever chosen.
std::uint16_t UsedActions(const EpisodeFile& file, const std::string& task) {
  Index used = 0;
  for (const StoredEpisode& episode : file.episodes) {
    if (episode.env != task) continue;
    used = std::max(used, episode.discrete ? static_cast<Index>(episode.actions.maxCoeff()) + 1
                                           : episode.actions.rows());
  }
  return static_cast<std::uint16_t>((1u << std::min<Index>(used, kActionCodeSize)) - 1u);
}

double ScaleOf(const EpisodeFile& file, const std::string& task, ValueTarget target) {
  std::vector<float> values;
  for (const StoredEpisode& episode : file.episodes) {
    if (episode.env != task) continue;
    const Eigen::VectorXf& of_episode = ValuesOf(episode, target);
    values.insert(values.end(), of_episode.begin(), of_episode.end());
  }
  const float high = Quantile(values, 0.95);
  return std::max(kLeastScale, static_cast<double>(high - Quantile(values, 0.05)));
}

// Whether the goal is a place or a velocity, which an instance is told by its reward.
int GoalOriginOf(const StoredEpisode& episode) {
  const auto style = episode.facts.find("style");
  if (style == episode.facts.end()) return 0;
  const RewardRule rule{
      .style = static_cast<RewardStyle>(std::clamp(static_cast<int>(style->second), 0, 5))};
  return rule.HasGoal() ? 0 : 4;
}

bool IsFitted(ValueTarget target) {
  return target == ValueTarget::kFitted || target == ValueTarget::kRegression;
}

}  // namespace

SourceSequences::SourceSequences(const EpisodeFile& train, ValueTarget target)
    : tasks_(SourcesOf(train)), gamma_(train.gamma) {
  for (const std::string& task : tasks_) {
    used_actions_.push_back(UsedActions(train, task));
    scales_.push_back(ScaleOf(train, task, target));
  }
  Add(train, target);
}

SourceSequences::SourceSequences(const EpisodeFile& held_out, ValueTarget target,
                                 const EpisodeFile& train, const SourceSequences& training)
    : tasks_(training.tasks_),
      used_actions_(training.used_actions_),
      scales_(training.scales_),
      gamma_(training.gamma_) {
  if (!IsFitted(target)) {
    Add(held_out, target);
    return;
  }
  EpisodeFile valued = held_out;
  FittedValue(train).AddTo(valued);
  Add(valued, target);
}

void SourceSequences::Add(const EpisodeFile& file, ValueTarget target) {
  RequireLift(file);
  for (const StoredEpisode& episode : file.episodes) {
    const auto found = std::find(tasks_.begin(), tasks_.end(), episode.env);
    if (found == tasks_.end()) continue;
    const auto task = static_cast<std::size_t>(found - tasks_.begin());
    const Segment segment = ToSegment(episode, file.action_code_size);
    SourceSequence& sequence = sequences_.emplace_back();
    sequence.task = static_cast<int>(task);
    sequence.terminated = episode.terminated;
    sequence.truncated = episode.truncated;
    sequence.goal_origin = GoalOriginOf(episode);
    sequence.label = ValuesOf(episode, target).transpose() / static_cast<float>(scales_[task]);
    sequence.channels.resize(kChannels, episode.horizon() + 1);
    ChannelWriter writer(
        {.used_actions = used_actions_[task], .goal_origin = sequence.goal_origin});
    const auto column = [&sequence](Index t) {
      return std::span<float>(sequence.channels.col(t).data(), kChannels);
    };
    const auto geometry = [&segment](Index t) {
      return std::span<const double>(segment.x.col(t).data(), kGeometrySize);
    };
    writer.Begin(geometry(0), column(0));
    for (Index t = 0; t < episode.horizon(); ++t) {
      writer.Next(geometry(t + 1), {segment.a.col(t).data(), kActionCodeSize},
                  segment.r[t] / scales_[task], column(t + 1));
    }
  }
}

std::int64_t SourceSequences::states() const {
  std::int64_t count = 0;
  for (const SourceSequence& sequence : sequences_) count += sequence.horizon() + 1;
  return count;
}

void SourceSequences::PermuteActions() {
  // one cycle (Sattolo), so that no entry stays where it is
  std::array<int, kActionCodeSize> from;
  std::iota(from.begin(), from.end(), 0);
  Rng rng(0, "permuted actions");
  for (std::size_t i = from.size() - 1; i > 0; --i) {
    std::swap(from[i], from[static_cast<std::size_t>(rng.Index(static_cast<std::int64_t>(i)))]);
  }
  for (SourceSequence& sequence : sequences_) {
    for (const int first : {kActionAt, kActionAt + kActionCodeSize}) {
      auto rows = sequence.channels.middleRows<kActionCodeSize>(first);
      const Eigen::MatrixXf before = rows;
      for (int i = 0; i < kActionCodeSize; ++i) {
        rows.row(i) = before.row(from[static_cast<std::size_t>(i)]);
      }
    }
  }
}

SourceSampler::SourceSampler(const SourceSequences& set, const std::vector<std::string>& tasks) {
  for (const std::string& task : tasks) {
    auto& sequences = by_task_.emplace_back();
    for (const SourceSequence& sequence : set.sequences()) {
      if (set.tasks()[static_cast<std::size_t>(sequence.task)] == task) {
        sequences.push_back(&sequence);
        longest_ = std::max(longest_, sequence.horizon());
      }
    }
    if (sequences.empty()) throw UserError(StrCat("no episode of ", task, " in the data"));
  }
  if (by_task_.empty()) throw UserError("no source to learn from");
}

SourceSampler::Place SourceSampler::Draw(Rng& rng, Index rest) const {
  if (rest > longest_) throw UserError(StrCat("no episode in the data has ", rest, " steps"));
  for (;;) {
    const auto& sequences = by_task_[static_cast<std::size_t>(rng.Index(std::ssize(by_task_)))];
    const SourceSequence* const sequence =
        sequences[static_cast<std::size_t>(rng.Index(std::ssize(sequences)))];
    const Index times = sequence->horizon() + 1 - rest;
    if (times > 0) return {sequence, rng.Index(times)};
  }
}

}  // namespace msrl
