// Source pretraining of the modules that read the last steps of an episode.
#ifndef MSRL_TRANSFER_TRAJ2VALUE_PRETRAINER_H_
#define MSRL_TRANSFER_TRAJ2VALUE_PRETRAINER_H_

#include <memory>
#include <vector>

#include "msrl/agents/subgraph/subgraph_gnn.h"
#include "msrl/agents/traj2value/traj2value_rnn.h"
#include "msrl/agents/traj2value/traj2value_transformer.h"
#include "msrl/transfer/module_pretrainer.h"

namespace msrl {

// other_context_r2: V of held-out states if what came before them was another window's.
template <typename Module>
class ContextTask : public ModuleTask {
 public:
  static std::vector<PretrainColumn> Columns() {
    return {{"other_context_r2", "R2, other context"}};
  }

  ContextTask(const typename Module::Shape& shape, const SourceSequences&) : shape_(shape) {}

  std::unique_ptr<ValueModule> MakeModule(const ParameterOptions& options,
                                          Rng& rng) const override {
    return std::make_unique<Module>(shape_, options, rng);
  }
  PretrainFigures Figures(ValueModule& module, const SourceSampler&,
                          const DrawnWindows& windows) const override {
    return {{"other_context_r2", ExplainedVariance(ValuesAtEnds(module, WithOtherContexts(windows)),
                                                   LabelsAtEnds(windows))}};
  }

 private:
  typename Module::Shape shape_;
};

using Traj2ValueRnnPretrainer = ModulePretrainerOf<Traj2ValueRnn, ContextTask<Traj2ValueRnn>>;
using Traj2ValueTransformerPretrainer =
    ModulePretrainerOf<Traj2ValueTransformer, ContextTask<Traj2ValueTransformer>>;
using SubgraphGnnPretrainer = ModulePretrainerOf<SubgraphGnn, ContextTask<SubgraphGnn>>;

}  // namespace msrl

#endif  // MSRL_TRANSFER_TRAJ2VALUE_PRETRAINER_H_
