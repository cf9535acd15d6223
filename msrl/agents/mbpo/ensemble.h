// A probabilistic ensemble that models one step of a task (Chua et al. 2018, Janner et al. 2019):
//
//   (o, a) -> N(mu, diag exp lv) of y = (r, o' - o)
//
// Inputs are standardised, outputs are in raw units (r in units of reward / reward_scale). Whether
// a step terminates is told by the rule of the task (EnvSpec::terminates). Where a task has none,
// every member learns the logit of an end besides.
#ifndef MSRL_AGENTS_MBPO_ENSEMBLE_H_
#define MSRL_AGENTS_MBPO_ENSEMBLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "msrl/agents/common/networks.h"
#include "msrl/agents/common/units.h"
#include "msrl/core/config.h"
#include "msrl/env/spec.h"
#include "msrl/memory/lazy_table.h"
#include "msrl/memory/replay.h"
#include "msrl/nn/static_graph.h"

namespace msrl {

struct EnsembleSettings {
  int members = 5;
  int elites = 3;
  int layers = 3;
  int width = 128;
  int batch = 256;
  double learning_rate = 1e-3;
  double decay = 1.0;
  std::int64_t holdout = 5000;
  int patience = 5;
  std::int64_t minibatches = 200;

  template <typename V>
  void Fields(V&& visit) {
    visit("model_members", members, "networks of the ensemble", Between(1, 64));
    visit("model_elites", elites, "of these the best, who imagine", Between(1, 64));
    visit("model_layers", layers, "hidden layers of each", Between(0, kMaxHiddenLayers));
    visit("model_width", width, "width of the hidden layers", Between(1, kMaxHiddenWidth));
    visit("model_batch", batch, "transitions per update of each", Between(1, 65536));
    visit("model_learning_rate", learning_rate, "Adam step size of the ensemble", Positive());
    visit("model_decay", decay, "decay of the weights, times the paper's", NotNegative());
    visit("model_holdout", holdout,
          "a fifth of all transitions, but at most these, tell when to stop", Positive());
    visit("model_patience", patience,
          "epochs without a member that gets better, before a training stops", NotNegative());
    visit("model_minibatches", minibatches, "updates per training at most", Positive());
  }
};

// UserError if there are more elites than members.
void RequireValid(const EnsembleSettings& settings);

// x -> high - softplus(high - x) -> low + softplus(. - low): smooth, between the two.
double BoundedLogVariance(double x, double low, double high);

class Ensemble {
 public:
  // One of so many transitions is held out.
  static constexpr std::int64_t kHoldoutShare = 5;
  // A member gets better if its error falls by more than this share.
  static constexpr double kImprovement = 0.01;
  // The weight of the width between the bounds of log-variances in the loss.
  static constexpr double kBoundWeight = 0.01;

  // For a replay of at most `most_transitions`, and for imagining at most `most_states` at once.
  // UserError on impossible settings.
  Ensemble(const EnvSpec& spec, const EnsembleSettings& settings, std::int64_t most_transitions,
           int most_states, std::uint64_t seed);

  std::int64_t parameter_count() const { return static_cast<std::int64_t>(parameters_.size()); }
  bool learns_ends() const { return terminates_ == nullptr; }

  // One training on all transitions: a new hold-out set, new units, a bootstrap sample for every
  // member, updates until the hold-out errors stop falling. Then each member is as it was at its
  // best, and the best are the elites. No allocation after the first. RunError if a number goes
  // bad.
  void Train(const Replay& replay);
  // One update: a batch of settings.batch transitions for each member.
  void UpdateOn(std::span<const ReplayBatch> batches);

  // One step of imagined states, one column each: every one asks an elite, drawn anew, and draws
  // from its Gaussian. `terminated` is 1 or 0. No allocation. RunError if a prediction is not
  // finite.
  void Advance(const ConstMatrixRef& observation, const ConstMatrixRef& action, Rng& rng,
               MatrixRef next, std::span<float> reward, std::span<std::uint8_t> terminated);

  std::span<const std::int64_t> elites() const { return elites_; }
  const Units& units() const { return units_; }
  Parameters& parameters() { return parameters_; }

  void DrainMetrics(MetricSink& sink) { metrics_.Drain(sink); }
  void Visit(const Archive& state);

 private:
  static constexpr int kChunk = 256;

  void BuildLoss();
  void AddDecay();
  void Split(const Replay& replay);
  void FindUnits(const Replay& replay);
  // Whether a member is better than ever in this training.
  bool KeepBest();
  void TakeBest();
  // Of every member: mean (mu - y)^2 over the hold-out set; the probability of an end, where it is
  // learned, is one more entry.
  void MeasureErrors(const Replay& replay);
  // The states in asked_, by one member.
  void AdvanceBy(int member, const ConstMatrixRef& observation, const ConstMatrixRef& action,
                 Rng& rng, MatrixRef next, std::span<float> reward,
                 std::span<std::uint8_t> terminated);

  std::span<float> NetworkValues() {
    return parameters_.values().subspan(network_.offset, best_.size());
  }
  std::span<float> MemberValues(int member) {
    return NetworkValues().subspan(static_cast<std::size_t>(member) * member_size_, member_size_);
  }

  EnsembleSettings settings_;
  std::function<bool(std::span<const double>)> terminates_;
  int n_, m_;
  int outputs_;  // of a Gaussian: 1 + n
  float bound_;  // of observations
  MlpSpec spec_;
  Parameters parameters_;
  MlpParameters network_;
  std::size_t member_size_;
  Parameter lv_low_, lv_high_;
  Units units_;
  Rng rng_;
  std::vector<std::int64_t> elites_;
  MetricMeans metrics_;

  // of updates
  StaticGraph graph_;
  Node x_, y_, ends_, likelihood_, cross_entropy_, loss_;
  std::vector<ReplayBatch> batches_;
  // of a training: rows of the replay's steps, the hold-out set first, and bootstrap samples
  LazyTable<std::int64_t> rows_;     // one row
  LazyTable<std::int64_t> samples_;  // a row for each member
  std::span<std::int64_t> held_out_, trained_;
  std::vector<double> errors_, best_errors_;
  FloatBuffer best_;  // each member at its best
  Eigen::VectorXd mean_, variance_;
  // of forward passes
  MlpTape tape_;
  Eigen::MatrixXf input_, noise_;
  std::vector<std::int64_t> chosen_;
  std::vector<Eigen::Index> asked_;
  std::vector<double> imagined_;  // one observation
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MBPO_ENSEMBLE_H_
