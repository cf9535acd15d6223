// The learned obstruction filter g_omega(o, Z, o^, Z^): the probability that a composed future is
// not realizable (paper, "Admissible composed futures"). docs/obstruction.md
//
//   ObstructionProxy proxy(spec.observation_size, features.size(), config, seed);
//   proxy.Predict(o, z, tails, segments, probability);   // k candidates that start in one state
//   if (proxy.Keeps(probability[i])) ...                 // everything until proxy.ready()
//   proxy.Add(o, z, tail, segment, OutcomeDiffers(...), probability[i]);   // its outcome is known
//   proxy.Add(o, z, o_next, psi_features, false, std::nullopt);            // a real continuation
//   proxy.Update();                                      // once per environment step
#ifndef MSRL_AGENTS_MSRL_OBSTRUCTION_PROXY_H_
#define MSRL_AGENTS_MSRL_OBSTRUCTION_PROXY_H_

#include <Eigen/Core>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "msrl/agents/metrics.h"
#include "msrl/core/config.h"
#include "msrl/core/rng.h"
#include "msrl/files/state.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/mlp.h"
#include "msrl/nn/running_normalizer.h"
#include "msrl/value/matrix_features.h"

namespace msrl {

struct ObstructionConfig {
  double threshold = 0.55;
  double tolerance = 0.25;
  int width = 64;
  int layers = 1;
  int batch = 64;
  double learning_rate = 1e-3;
  double weight_decay = 1.0;
  int update_every = 8;
  int memory = 4096;
  int min_each = 32;
  int min_updates = 100;

  template <typename V>
  void Fields(V&& visit) {
    visit("obstruction_threshold", threshold,
          "candidates are kept up to this probability of not being realizable", Between(0, 1));
    visit("obstruction_tolerance", tolerance,
          "largest error of a geometry slot with which a predicted outcome still holds",
          Positive());
    visit("obstruction_width", width, "width of the proxy's hidden layers", Between(1, 4096));
    visit("obstruction_layers", layers, "hidden layers of the proxy", Between(1, 8));
    visit("obstruction_batch", batch, "compositions per update, half of them obstructed",
          Between(2, 65'536));
    visit("obstruction_learning_rate", learning_rate, "Adam step size of the proxy", Positive());
    visit("obstruction_weight_decay", weight_decay, "decoupled weight decay of the proxy",
          Between(0, 1000));
    visit("obstruction_update_every", update_every, "environment steps per update of the proxy",
          Positive());
    visit("obstruction_memory", memory, "compositions with known outcome that are kept",
          Between(4, 10'000'000));
    visit("obstruction_min_each", min_each,
          "obstructed and realizable compositions before the first update", Positive());
    visit("obstruction_min_updates", min_updates, "updates before the proxy removes anything",
          Between(0, 1e9));
  }
};

// Whether the state that was reached is another than the one that a segment's tail foretold: some
// slot of the aligned geometry is off by more than `tolerance`. The slots have typical magnitude 1
// everywhere, so one tolerance serves all tasks. Sizes must be equal.
bool OutcomeDiffers(std::span<const double> real, std::span<const double> foretold,
                    double tolerance);

class ObstructionProxy {
 public:
  using ConstVectorRef = Eigen::Ref<const Eigen::VectorXf>;

  // Judged candidates that metrics and base rate look back on.
  static constexpr int kWindow = 1000;

  // UserError on impossible settings. Random streams: "obstruction-init", "obstruction-replay".
  // With features that have end points the network also sees how far the segment's first state is
  // from the last state of Z.
  ObstructionProxy(int observation_size, const MatrixFeatures& features,
                   const ObstructionConfig& config, std::uint64_t seed);
  // For features of another kind: `feature_size` numbers, taken as they are.
  ObstructionProxy(int observation_size, int feature_size, const ObstructionConfig& config,
                   std::uint64_t seed);

  const ObstructionConfig& config() const { return config_; }
  std::int64_t parameter_count() const;
  // Whether it has seen and learned enough to remove candidates.
  bool ready() const { return updates_ >= config_.min_updates; }
  bool Keeps(float probability) const {
    return !ready() || probability <= static_cast<float>(config_.threshold);
  }

  // Probabilities of k candidates that start in (o, Z): o (n) and features of Z (f), tails'
  // observations (n x k) and features of the segments' matrices Z^ - Z (f x k). RunError if a
  // probability is no number. Changes nothing that is saved; no allocation.
  void Predict(const ConstVectorRef& o, const ConstVectorRef& z,
               const ConstMatrixRef& tail_observations, const ConstMatrixRef& segment_features,
               std::span<float> probability);
  // For the metric of how many candidates are removed: what Predict said in a training step.
  void CountFiltered(std::span<const float> probability);

  // A composition whose outcome is known. `predicted` is what Predict said of it; empty for real
  // continuations, which are no candidates: they teach, but count neither for metrics nor for the
  // base rate. RunError on numbers that are not finite. No allocation.
  void Add(const ConstVectorRef& o, const ConstVectorRef& z, const ConstVectorRef& tail,
           const ConstVectorRef& segment, bool obstructed, std::optional<float> predicted);
  // To be called once per environment step: every update_every-th call is one gradient step, if
  // enough of both classes is known. RunError if a number goes bad. No allocation.
  void Update();

  // Examples in memory.
  int obstructed_count() const { return rings_[kObstructed].size; }
  int realizable_count() const { return rings_[kRealized].size + rings_[kReal].size; }
  std::int64_t updates() const { return updates_; }
  // Share of obstructed ones among the last judged candidates, drawn a little towards one half.
  double base_rate() const;
  const Mlp& network() const { return network_; }

  // obstruction/auroc, ece, brier, base_rate (over the window, while it has both classes), removed
  // and loss (since the last call).
  void DrainMetrics(MetricSink& sink);

  // Reading is into a proxy made with the same sizes and settings; UserError on what does not fit.
  void Visit(const Archive& state);

 private:
  // Realized candidates and real continuations are kept apart, so that neither crowds out the
  // other: a proxy that only knows real continuations learns to spot what is composed.
  enum Kind : std::size_t { kObstructed, kRealized, kReal, kKinds };
  struct Ring {
    Eigen::MatrixXf examples;  // o, o^ and both features as they came, one per column
    int size = 0;
    int next = 0;
  };

  // Where both end points are in the features.
  struct Junction {
    int horizon = 0;  // log(1 + T): 0 if there is no state yet
    int first = 0;    // x0
    int last = 0;     // xT
    int slots = 0;    // 0: none
    int size() const { return slots > 0 ? slots + 1 : 0; }
  };
  static Junction JunctionOf(const MatrixFeatures& features);
  ObstructionProxy(int observation_size, int feature_size, const Junction& junction,
                   const ObstructionConfig& config, std::uint64_t seed);

  bool CanLearn() const {
    return obstructed_count() >= config_.min_each && realizable_count() >= config_.min_each;
  }
  const Ring& DrawRing(bool obstructed);
  // The last rows of an input from its features.
  void FillJunction(Eigen::Ref<Eigen::VectorXf> input) const;
  void LearnOnce();
  void Judge(float predicted, bool obstructed);
  // log(p / (1 - p)) of the base rate: the network's own odds are those of equally large classes.
  float BaseRateLogit() const;

  ObstructionConfig config_;
  int n_;  // size of an observation
  int f_;  // size of matrix features
  Junction junction_;
  MlpSpec spec_;
  Mlp network_;
  Adam adam_;
  Rng rng_;
  // One for o and o^: what matters is their difference.
  RunningNormalizer normalizer_;
  std::array<Ring, kKinds> rings_;
  std::int64_t steps_ = 0;
  std::int64_t updates_ = 0;

  // the last judged candidates, a ring
  std::vector<double> judged_probability_;
  std::vector<std::uint8_t> judged_obstructed_;
  int judged_ = 0;
  int next_judged_ = 0;
  int judged_positives_ = 0;
  MetricMeans metrics_;

  // workspace
  MlpTape tape_, predict_tape_;
  Eigen::MatrixXf input_, predict_input_, d_logit_;
  FloatBuffer gradients_;
};

}  // namespace msrl

#endif  // MSRL_AGENTS_MSRL_OBSTRUCTION_PROXY_H_
