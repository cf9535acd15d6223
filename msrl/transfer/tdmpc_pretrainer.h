// Teaches TD-MPC2's latent model on source episodes, over the slots that all tasks share.
#ifndef MSRL_TRANSFER_TDMPC_PRETRAINER_H_
#define MSRL_TRANSFER_TDMPC_PRETRAINER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/tdmpc/learner.h"
#include "msrl/agents/tdmpc/pretrained_model.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/transfer/source_sequences.h"
#include "msrl/transfer/world_model_control.h"

namespace msrl {

// The losses are the agent's (docs/agents/tdmpc.md) on rewards in the unit of their task, with two
// changes that keep values and policy near the data:
//   y_t <- (1 - kappa) y_t + kappa G_t,  kappa = 1 for the first `label_updates` of all updates
//   L_pi += clone_weight mean - log N(atanh a_t; mu, sigma)
struct TdMpcPretrainConfig : LatentWeights {
  WorldModelControl control = WorldModelControl::kNone;
  ValueTarget target = ValueTarget::kFitted;  // of all transfer baselines
  LatentSizes sizes;
  int updates = 30'000;
  int batch = 128;
  int horizon = 3;
  double label_updates = 0.2;
  double label_share = 0.5;
  double clone_weight = 0.1;

  template <typename V>
  void Fields(V&& visit) {
    visit("control", control, "what is broken on purpose");
    visit("target", target, "values that are the labels G");
    visit("encoder_width", sizes.encoder_width, "width of the encoder's hidden layer",
          Between(1, kMaxHiddenWidth));
    visit("latent_groups", sizes.latent_groups, "groups of eight numbers that a latent state has",
          Between(1, 1024));
    visit("model_width", sizes.model_width, "width of the two hidden layers of all other networks",
          Between(1, kMaxHiddenWidth));
    visit("q_count", sizes.q_count, "value networks", Between(2, 64));
    visit("bins", sizes.bins,
          "points that rewards and values are predicted on; 0: as plain numbers",
          Between(2, 4096).Or(0));
    visit("termination", sizes.termination, "whether the model predicts that episodes terminate");
    visit("task_size", sizes.task_size, "of the vector that tells the task",
          Between(1, kMaxHiddenWidth));
    visit("updates", updates, "gradient steps", NotNegative());
    visit("batch", batch, "sequences per gradient step", Between(1, 65'536));
    visit("horizon", horizon, "steps of each", Between(1, 64));
    visit("label_updates", label_updates, "share of the updates in which values are the labels",
          Between(0, 1));
    visit("label_share", label_share, "share of the label in a value's target after that",
          Between(0, 1));
    visit("clone_weight", clone_weight, "weight of the log-likelihood of what was done",
          NotNegative());
    LatentWeights::Fields(visit);
  }
};

// Writes the steps of an episode from `time` on into one sequence of a batch, with the rewards and
// labels of `told`: its own, or those of another. After its end there are its last state and zeros.
void FillSequence(const SourceSequence& sequence, const SourceSequence& told, Index time,
                  Eigen::Index b, SequenceBatch& batch, SourceLesson& lesson);

// Figures, on states of held-out episodes drawn task by task:
//   r2, reward_r2         share of the variance of G_t and of r_t that Q(z_t, a_t) and R(z_t, a_t)
//   tell;
//                         train_r2: on training episodes
//   open_loop             squared error of five predicted steps, over that of "nothing changes":
//                         of latent states, and of slots that are read off them (open_loop_x)
class TdMpcPretrainer : public Pretrainer {
 public:
  static TdMpcPretrainConfig Configure(std::span<const std::string> settings);
  static std::vector<PretrainColumn> Columns();
  static std::optional<PaperFigure> Paper(std::string_view /*source*/,
                                          std::string_view /*column*/) {
    return std::nullopt;
  }
  static std::vector<ValueTarget> Targets(const TdMpcPretrainConfig& config) {
    return {config.target};
  }
  static ArtefactHeader Announce(const TdMpcPretrainConfig& config);

  TdMpcPretrainer(const TdMpcPretrainConfig& config, const EpisodeFile& train,
                  const EpisodeFile& held_out);

  std::unique_ptr<Pretraining> Start(const PretrainJob& job) const override;
  std::pair<std::int64_t, std::int64_t> examples() const override {
    return {train_.states(), held_out_.states()};
  }

 private:
  TdMpcPretrainConfig config_;
  SourceSequences train_, held_out_;
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_TDMPC_PRETRAINER_H_
