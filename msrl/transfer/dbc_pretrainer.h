// Source pretraining of a bisimulation metric (msrl/agents/dbc).
#ifndef MSRL_TRANSFER_DBC_PRETRAINER_H_
#define MSRL_TRANSFER_DBC_PRETRAINER_H_

#include <memory>
#include <vector>

#include "msrl/agents/dbc/dbc.h"
#include "msrl/transfer/module_pretrainer.h"

namespace msrl {

class DbcTask : public ModuleTask {
 public:
  // distance_correlation: Pearson of |z_i - z_j| (mean over the latent numbers) and |G_i - G_j|
  // over pairs of held-out states. latent_distance: mean of the former; near 0 all states are one.
  static std::vector<PretrainColumn> Columns() {
    return {{"distance_correlation", "distance correlation"},
            {"latent_distance", "latent distance"}};
  }

  DbcTask(const DbcShape& shape, const SourceSequences&) : shape_(shape) {}

  std::unique_ptr<ValueModule> MakeModule(const ParameterOptions& options,
                                          Rng& rng) const override {
    return std::make_unique<Dbc>(shape_, options, rng);
  }
  PretrainFigures Figures(ValueModule& module, const SourceSampler& held_out,
                          const DrawnWindows& windows) const override;

 private:
  DbcShape shape_;
};

using DbcPretrainer = ModulePretrainerOf<Dbc, DbcTask>;

}  // namespace msrl

#endif  // MSRL_TRANSFER_DBC_PRETRAINER_H_
