// Source pretraining of the matrix-value branch: F_eta(Z) ~ V(Z) (paper, Section 4 and its table
// "Source pretraining results").
#ifndef MSRL_TRANSFER_VALUE_BRANCH_PRETRAINER_H_
#define MSRL_TRANSFER_VALUE_BRANCH_PRETRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/core/config.h"
#include "msrl/datasets/episode_file.h"
#include "msrl/transfer/prefix_set.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/value/value_branch.h"

namespace msrl {

enum class PretrainObjective { kPaper, kShape };
constexpr auto EnumNames(PretrainObjective) { return Names("paper", "shape"); }

enum class PretrainControl {
  kNone,
  kShuffled,         // each pair is taught the values of another
  kUnaligned,        // another lift
  kLastState,        // a branch of the same size that has only met the last state
  kObservationOnly,  // F of the last state, the observation that all environments share: no matrix
  kIdentity,         // F is told the family it learns from
};
constexpr auto EnumNames(PretrainControl) {
  return Names("none", "shuffled", "unaligned", "last-state", "observation-only", "identity");
}

// With y = (V - centre) * scale, e = F - y at the two prefixes of a pair, `gap` steps apart:
//   loss = mean of w [e1^2 + e2^2 + difference (e2 - e1)^2 / gap],
//   w = 0.1 / (variance of y in the episode + 0.01) or 1.
// "paper" regresses absolute values (centre = overall mean, scale = 1 / deviation, difference 0,
// w = 1); "shape" learns how values change within an episode. Every part is a field.
struct PretrainConfig {
  PretrainObjective objective = PretrainObjective::kPaper;
  ValueTarget target = ValueTarget::kFitted;
  LiftKind lift = LiftKind::kCompact;
  FeatureSet features = FeatureSet::kSelectedEndpoints;
  PretrainControl control = PretrainControl::kNone;
  std::string target_family;
  Oracle oracle = Oracle::kNone;
  int width = 128;
  int layers = 2;
  bool layer_norm = true;
  int updates = 5000;
  int batch = 256;
  double learning_rate = 1e-3;
  bool decay_learning_rate = true;
  double weight_decay = 0.01;
  double feature_noise = 0.0;
  bool centre = false;
  bool inverse_variance = false;
  double difference = 0.0;
  int max_gap = 26;
  double gap_one_share = 0.5;
  int pairs_per_episode = 16;
  double segments = 0.0;
  int validation_min_steps = 1;
  bool silence = true;

  // The defaults of an objective. UserError on an unknown one.
  static PretrainConfig For(std::string_view objective);

  template <typename V>
  void Fields(V&& visit) {
    visit("objective", objective, "what is learned: absolute values, or their shape");
    visit("target", target, "value of a prefix");
    visit("lift", lift, "what Z is made of", kCompactLifts);
    visit("features", features, "what the network sees of Z");
    visit("control", control, "what is broken on purpose");
    visit("target_family", target_family,
          "control=identity: the family that F takes a target for; none if empty");
    visit("oracle", oracle, "inputs that no agent has, to measure what Z cannot show");
    visit("width", width, "units per hidden layer", Between(1, BranchShape::kMaxWidth));
    visit("layers", layers, "hidden layers", Between(1, BranchShape::kMaxLayers));
    visit("layer_norm", layer_norm, "normalise hidden layers");
    visit("updates", updates, "gradient steps", NotNegative());
    visit("batch", batch, "prefixes per gradient step, in pairs", Between(2, 65'536).Even());
    visit("learning_rate", learning_rate, "step size of AdamW", Between(0, 1).OpenBelow());
    visit("decay_learning_rate", decay_learning_rate, "down to zero along half a cosine");
    visit("weight_decay", weight_decay, "decoupled weight decay", NotNegative());
    visit("feature_noise", feature_noise, "relative noise on every feature", NotNegative());
    visit("centre", centre, "subtract the episode's mean from the values");
    visit("inverse_variance", inverse_variance, "weigh episodes by 0.1 / (variance + 0.01)");
    visit("difference", difference, "weight of the difference term", NotNegative());
    visit("max_gap", max_gap, "most steps between the prefixes of a pair", AtLeast(1));
    visit("gap_one_share", gap_one_share, "share of pairs that are one step apart", Between(0, 1));
    visit("pairs_per_episode", pairs_per_episode, "pairs of prefixes taken from each episode",
          AtLeast(1));
    visit("segments", segments, "share of pairs whose matrix begins within the episode",
          Between(0, 1));
    visit("validation_min_steps", validation_min_steps, "shortest prefix in the validation set",
          NotNegative());
    visit("silence", silence, "zero weights for inputs that are never active");
  }
};

// Figures of the result, on prefixes of at least validation_min_steps:
//   train_error, validation_error  mean squared error / variance of the training targets
//   rank_correlation               Spearman of F and V
//   centred_rank_correlation       the same after the mean of each episode is taken off both
//   difference_correlation         Pearson of F(Z_2) - F(Z_1) and V_2 - V_1 over pairs
// F of the artefact is in units of reward / reward_scale and sees the matrix alone: what it was
// told of the family (control=identity) is fixed at that of `target_family`.
class ValueBranchPretrainer : public Pretrainer {
 public:
  // The defaults of the objective among the settings, and then all of them in their order.
  static PretrainConfig Configure(std::span<const std::string> settings);
  static std::vector<PretrainColumn> Columns();
  static std::optional<PaperFigure> Paper(std::string_view source, std::string_view column);
  static std::vector<ValueTarget> Targets(const PretrainConfig& config) { return {config.target}; }
  static ArtefactHeader Announce(const PretrainConfig& config);

  ValueBranchPretrainer(const PretrainConfig& config, const EpisodeFile& train,
                        const EpisodeFile& held_out);
  // The sets were made with the config's options.
  ValueBranchPretrainer(const PretrainConfig& config, PrefixSet train, PrefixSet held_out);

  std::unique_ptr<Pretraining> Start(const PretrainJob& job) const override;
  std::pair<std::int64_t, std::int64_t> examples() const override {
    return {std::ssize(train_.value), std::ssize(held_out_.value)};
  }

 private:
  PretrainConfig config_;
  PrefixSet train_, held_out_;
};

// Sets of a file for a config.
PrefixSetOptions TrainingPrefixes(const PretrainConfig& config);
PrefixSetOptions ValidationPrefixes(const PretrainConfig& config);
// The validation set. Where the values are fitted, held-out states are valued by the regression of
// the training episodes, not by one of their own as in their file: it is V of the training that F
// is asked for.
PrefixSet HeldOutPrefixes(const PretrainConfig& config, const EpisodeFile& train,
                          const EpisodeFile& held_out);

}  // namespace msrl

#endif  // MSRL_TRANSFER_VALUE_BRANCH_PRETRAINER_H_
