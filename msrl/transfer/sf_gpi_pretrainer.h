// Source pretraining of successor features (msrl/agents/sf).
#ifndef MSRL_TRANSFER_SF_GPI_PRETRAINER_H_
#define MSRL_TRANSFER_SF_GPI_PRETRAINER_H_

#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/sf/sf_gpi.h"
#include "msrl/transfer/module_pretrainer.h"

namespace msrl {

// With policy i that of source i, steps of drawn windows are taught
//   mean (phi . w_i - r / (1 - gamma))^2 + 0.1 mean |D phi - (x' - x) / unit|^2
//   + mean Huber(psi - y) + 0.5 mean Huber(psi . w_i - G) + 0.1 mean surprise of mu at u,
// where y = (1 - gamma) sum_{k < T-t} gamma^k phi_{t+k}, and gamma^{T-t} psi(x_T, mu(x_T)) if the
// episode was cut off, is made by the networks as they were every kRefreshEvery steps, w_i is
// constant beside psi, and phi is shifted and scaled to mean 0 and deviation 1.
class SfGpiTask : public ModuleTask {
 public:
  // reward_r2: R2 of phi . w_i against rewards of held-out steps, the least of all sources.
  // value_error: mean |psi . w_i - G| / mean |G|.
  static std::vector<PretrainColumn> Columns() {
    return {{"reward_r2", "reward R2"}, {"value_error", "value error"}};
  }
  static constexpr int kRefreshEvery = 250;

  // UserError if there are more sources than policies, or values have another discount.
  SfGpiTask(const SfGpiShape& shape, const SourceSequences& train);

  std::unique_ptr<ValueModule> MakeModule(const ParameterOptions& options, Rng& rng) const override;
  std::unique_ptr<ModuleLesson> MakeLesson(ValueModule& module, int windows,
                                           const std::vector<std::string>& sources) const override;
  // psi(x_t, u_t, e_i) . w_i; where nothing was done any more, of what mu does.
  Eigen::RowVectorXf Values(ValueModule& module, const DrawnWindows& windows) const override;
  PretrainFigures Figures(ValueModule& module, const SourceSampler& held_out,
                          const DrawnWindows& windows) const override;

 private:
  SfGpiShape shape_;
  const SourceSequences& train_;
};

using SfGpiPretrainer = ModulePretrainerOf<SfGpi, SfGpiTask>;

// What psi is taught of all steps of an episode: features x T.
//   y_t = (1 - gamma) phi_t + gamma y_{t+1},   y_T = rest
Eigen::MatrixXf SuccessorTargets(const Eigen::MatrixXf& phi, const Eigen::VectorXf& rest,
                                 double gamma);

}  // namespace msrl

#endif  // MSRL_TRANSFER_SF_GPI_PRETRAINER_H_
