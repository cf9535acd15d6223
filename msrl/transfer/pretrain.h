// Source pretraining of the matrix-value branch: F_eta(Z) ~ V(Z) (paper, Section 4 and its table
// "Source pretraining results").
#ifndef MSRL_TRANSFER_PRETRAIN_H_
#define MSRL_TRANSFER_PRETRAIN_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "msrl/datasets/episode_file.h"
#include "msrl/transfer/correlation.h"
#include "msrl/transfer/prefix_set.h"
#include "msrl/value/value_branch.h"

namespace msrl {

// With y = (V - centre) * scale, e = F - y at the two prefixes of a pair, `gap` steps apart:
//   loss = mean of w [e1^2 + e2^2 + difference (e2 - e1)^2 / gap],
//   w = 0.1 / (variance of y in the episode + 0.01) or 1.
// "paper" regresses absolute values (centre = overall mean, scale = 1 / deviation, difference 0,
// w = 1); "shape" learns how values change within an episode. Every part is a field.
struct PretrainConfig {
  std::string objective = "paper";
  std::string target = "fitted";
  std::string lift = "compact";
  std::string features = "selected+endpoints";
  std::string control = "none";
  std::string oracle = "none";
  int width = 128;
  int layers = 2;
  bool layer_norm = true;
  int updates = 10000;
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
  int validation_min_steps = 1;
  bool silence = true;

  // The defaults of an objective. UserError on an unknown one.
  static PretrainConfig For(std::string_view objective);

  template <typename V>
  void Fields(V&& visit) {
    visit("objective", objective, "what is learned: absolute values, or their shape",
          {"paper", "shape"});
    visit("target", target, "value of a prefix", {"mc", "expert", "fitted", "critic"});
    visit("lift", lift, "what Z is made of", {"compact", "compact-no-action", "compact-no-reward"});
    visit("features", features, "what the network sees of Z",
          {"selected+endpoints", "selected", "all+endpoints", "all"});
    visit("control", control, "what is broken on purpose",
          {"none", "shuffled", "unaligned", "observation-only"});
    visit("oracle", oracle, "inputs that no agent has, to measure what Z cannot show",
          {"none", "instance", "observation", "both"});
    visit("width", width, "units per hidden layer");
    visit("layers", layers, "hidden layers");
    visit("layer_norm", layer_norm, "normalise hidden layers");
    visit("updates", updates, "gradient steps");
    visit("batch", batch, "prefixes per gradient step, in pairs");
    visit("learning_rate", learning_rate, "step size of AdamW");
    visit("decay_learning_rate", decay_learning_rate, "down to zero along half a cosine");
    visit("weight_decay", weight_decay, "decoupled weight decay");
    visit("feature_noise", feature_noise, "relative noise on every feature");
    visit("centre", centre, "subtract the episode's mean from the values");
    visit("inverse_variance", inverse_variance, "weigh episodes by 0.1 / (variance + 0.01)");
    visit("difference", difference, "weight of the difference term");
    visit("max_gap", max_gap, "most steps between the prefixes of a pair");
    visit("gap_one_share", gap_one_share, "share of pairs that are one step apart");
    visit("pairs_per_episode", pairs_per_episode, "pairs of prefixes taken from each episode");
    visit("validation_min_steps", validation_min_steps, "shortest prefix in the validation set");
    visit("silence", silence, "zero weights for inputs that are never active");
  }
};

// UserError on impossible values.
void RequireValid(const PretrainConfig& config);

struct PretrainMetrics {
  // Mean squared error in units of the variance of the training targets.
  double train_error = 0.0;
  double validation_error = 0.0;
  // Spearman of F and V over prefixes of at least validation_min_steps.
  double rank_correlation = 0.0;
  // The same after the mean of each episode is taken off both.
  double centred_rank_correlation = 0.0;
  // Pearson of F(Z_2) - F(Z_1) and V_2 - V_1 over pairs.
  double difference_correlation = 0.0;
};

struct PretrainResult {
  ValueBranch branch;
  PretrainMetrics metrics;
};

// Trains on the prefixes of the named sources, measures on those of the validation set. F of the
// result is in units of reward / reward_scale. Deterministic in config, sets and seed. `progress`
// is called now and then with the updates made. The sets were made with the config's options.
PretrainResult Pretrain(const PretrainConfig& config, const PrefixSet& train,
                        const PrefixSet& validation, std::span<const std::string> sources,
                        std::uint64_t seed, const std::function<void(int updates)>& progress = {});

PretrainMetrics Evaluate(const ValueBranch& branch, const PrefixSet& set,
                         std::span<const std::string> sources);

// Of the branch that a config makes.
ArtefactHeader HeaderOf(const PretrainConfig& config);

// Sets of a file for a config.
PrefixSetOptions TrainingPrefixes(const PretrainConfig& config);
PrefixSetOptions ValidationPrefixes(const PretrainConfig& config);

// A row of the paper's table.
struct PaperPretraining {
  MeanStd train_error, validation_error, rank_correlation;
};
// By family id, or "mixed"; empty for other names.
std::optional<PaperPretraining> PaperRow(std::string_view source);

}  // namespace msrl

#endif  // MSRL_TRANSFER_PRETRAIN_H_
