#include "msrl/transfer/uvfa_pretrainer.h"

#include <algorithm>

#include "msrl/agents/common/percentiles.h"
#include "msrl/core/check.h"

namespace msrl {
namespace {

constexpr double kHindsightShare = 0.5;
constexpr double kLeastScale = 1e-3;
constexpr int kLength = ValueModule::kTrainingLength;

}  // namespace

UvfaTask::UvfaTask(const UvfaShape& shape, const SourceSequences& train)
    : shape_(shape), gamma_(train.gamma()) {
  std::vector<std::vector<float>> returns(train.tasks().size());
  for (const SourceSequence& sequence : train.sequences()) {
    // the goal of the last state: whatever is shown of it is shown by then
    const auto wanted = sequence.channels.col(sequence.horizon()).segment<kGoalChannels>(kGoalAt);
    if (wanted.segment<2>(kGeometrySize + sequence.goal_origin).isZero()) continue;
    const Eigen::RowVectorXd all =
        DistanceReturns(sequence, 0, sequence.horizon() + 1,
                        wanted.segment<2>(sequence.goal_origin), sequence.horizon());
    auto& of_task = returns[static_cast<std::size_t>(sequence.task)];
    for (const double value : all) of_task.push_back(static_cast<float>(value));
  }
  for (std::vector<float>& of_task : returns) {
    double range = 1.0;  // of a task without goals
    if (!of_task.empty()) {
      const float high = Quantile(of_task, 0.95);
      range = std::max(kLeastScale, static_cast<double>(high - Quantile(of_task, 0.05)));
    }
    scales_.push_back(range);
  }
}

std::unique_ptr<ValueModule> UvfaTask::MakeModule(const ParameterOptions& options, Rng& rng) const {
  return std::make_unique<Uvfa>(shape_, options, rng);
}

Eigen::RowVectorXd UvfaTask::DistanceReturns(const SourceSequence& sequence, Index first,
                                             Index states, const Eigen::Vector2f& goal,
                                             Index end) const {
  const auto distance = [&](Index t) {
    const auto point = sequence.channels.col(t).segment<2>(sequence.goal_origin);
    return static_cast<double>((point - goal).norm());
  };
  Eigen::RowVectorXd returns(states);
  double rest = 0.0;
  for (Index t = end; t >= first; --t) {
    if (t < end) rest = -distance(t + 1) + gamma_ * rest;
    if (t < first + states) returns[t - first] = rest;
  }
  return returns;
}

void UvfaTask::Hindsight(Rng& rng, const SourceSequence& sequence, Index first, int window,
                         DrawnWindows& drawn) const {
  const Index states = drawn.states[static_cast<std::size_t>(window)];
  const Index last = first + states - 1;
  const Index reached = last + rng.Index(sequence.horizon() - last + 1);
  const auto state = sequence.channels.col(reached);
  // with both of its coordinates dead it came nowhere
  if (state.segment<2>(kGeometrySize + sequence.goal_origin).isZero()) return;
  const Eigen::Vector2f goal = state.segment<2>(sequence.goal_origin);
  const Index column = static_cast<Index>(window) * kLength;
  drawn.label.segment(column, states) =
      (DistanceReturns(sequence, first, states, goal, reached) / scale(sequence.task))
          .cast<float>();
  for (Index t = 0; t < states; ++t) {
    WriteGoal({.origin = sequence.goal_origin,
               .at = {static_cast<double>(goal[0]), static_cast<double>(goal[1])}},
              {drawn.channels.col(column + t).data() + kGoalAt, kGoalChannels});
  }
}

void UvfaTask::Relabel(Rng& rng, const SourceSequence& sequence, Index first, int window,
                       DrawnWindows& drawn) const {
  if (rng.Bernoulli(kHindsightShare)) Hindsight(rng, sequence, first, window, drawn);
}

PretrainFigures UvfaTask::Figures(ValueModule& module, const SourceSampler& held_out,
                                  const DrawnWindows& windows) const {
  DrawnWindows drawn(windows.count());
  Rng rng(0, "new goals");
  for (int w = 0; w < drawn.count(); ++w) {
    const DrawnPlace place = DrawWindow(held_out, rng, w, drawn);
    Hindsight(rng, *place.sequence, place.first, w, drawn);
  }
  return {{"new_goal_r2", ExplainedVariance(ValuesAtEnds(module, drawn), LabelsAtEnds(drawn))}};
}

}  // namespace msrl
