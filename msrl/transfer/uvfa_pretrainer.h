// Source pretraining of a universal value function (msrl/agents/uvfa).
#ifndef MSRL_TRANSFER_UVFA_PRETRAINER_H_
#define MSRL_TRANSFER_UVFA_PRETRAINER_H_

#include <memory>
#include <vector>

#include "msrl/agents/uvfa/uvfa.h"
#include "msrl/transfer/module_pretrainer.h"

namespace msrl {

// Half of all windows are taught in hindsight: the goal is where the same episode came later, p_f,
// and the value what minus the distance would have given on the way there,
//   G_t = 1/s sum_{k=t}^{f-1} gamma^{k-t} -|p_{k+1} - p_f|,
// as if arriving ended the episode. p is the place or the velocity, as the episode's own goal is
// one. So goals are known between and beyond those of the sources. The unit must be that of the
// other labels, or both would contradict each other: s makes P95 - P5 of the same sum towards the
// own goals of the task's episodes 1, to their end, as it is of the labels.
class UvfaTask : public ModuleTask {
 public:
  // new_goal_r2: V against G_t in hindsight, of held-out episodes.
  static std::vector<PretrainColumn> Columns() { return {{"new_goal_r2", "R2, new goals"}}; }

  UvfaTask(const UvfaShape& shape, const SourceSequences& train);

  std::unique_ptr<ValueModule> MakeModule(const ParameterOptions& options, Rng& rng) const override;
  void Relabel(Rng& rng, const SourceSequence& sequence, Index first, int window,
               DrawnWindows& drawn) const override;
  PretrainFigures Figures(ValueModule& module, const SourceSampler& held_out,
                          const DrawnWindows& windows) const override;

  // The sums of states first, ..., first + states - 1 towards a goal until state `end`, without the
  // factor 1/s.
  Eigen::RowVectorXd DistanceReturns(const SourceSequence& sequence, Index first, Index states,
                                     const Eigen::Vector2f& goal, Index end) const;
  double scale(int task) const { return scales_[static_cast<std::size_t>(task)]; }

 private:
  void Hindsight(Rng& rng, const SourceSequence& sequence, Index first, int window,
                 DrawnWindows& drawn) const;

  UvfaShape shape_;
  double gamma_;
  std::vector<double> scales_;  // s of each task
};

using UvfaPretrainer = ModulePretrainerOf<Uvfa, UvfaTask>;

}  // namespace msrl

#endif  // MSRL_TRANSFER_UVFA_PRETRAINER_H_
