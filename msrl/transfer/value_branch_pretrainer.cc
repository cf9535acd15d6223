#include "msrl/transfer/value_branch_pretrainer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/core/config.h"
#include "msrl/core/text.h"
#include "msrl/env/spec.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/random.h"
#include "msrl/transfer/fitted_value.h"
#include "msrl/value/value_branch.h"

namespace msrl {
namespace {

constexpr double kShapeScale = 0.1;
constexpr int kEvaluationBatch = 1024;
constexpr std::int64_t kMaxEvaluationPairs = 100'000;

// The pairs that belong to the sources. UserError if there are none.
std::vector<std::int64_t> PairsOf(const PrefixSet& set, std::span<const std::string> sources) {
  std::vector<char> chosen;
  for (const std::string& name : set.sources) {
    chosen.push_back(std::find(sources.begin(), sources.end(), name) != sources.end() ? 1 : 0);
  }
  std::vector<std::int64_t> pairs;
  for (std::int64_t k = 0; k < set.pairs(); ++k) {
    if (chosen[static_cast<std::size_t>(set.source[static_cast<std::size_t>(2 * k)])] != 0) {
      pairs.push_back(k);
    }
  }
  if (pairs.empty()) {
    throw UserError(
        StrCat("no episode of ", sources.empty() ? "any source" : sources.front(), " in the data"));
  }
  return pairs;
}

// At most `limit` of them, evenly.
std::vector<std::int64_t> Thin(const std::vector<std::int64_t>& pairs, std::int64_t limit) {
  const std::size_t stride = 1 + (pairs.size() - 1) / static_cast<std::size_t>(limit);
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < pairs.size(); i += stride) kept.push_back(pairs[i]);
  return kept;
}

// y = (V - centre) * scale.
struct TargetUnit {
  bool per_episode = false;
  double offset = 0.0;
  double scale = 1.0;
  double variance = 1.0;  // of y

  double Target(const PrefixSet& set, std::size_t i) const {
    const double centre = per_episode ? static_cast<double>(set.episode_mean[i]) : offset;
    return (set.value[i] - centre) * scale;
  }
};

TargetUnit FindUnit(const PretrainConfig& config, const PrefixSet& set,
                    const std::vector<std::int64_t>& pairs) {
  TargetUnit unit;
  unit.per_episode = config.centre;
  const auto moments = [&] {
    double sum = 0.0;
    double squares = 0.0;
    for (const std::int64_t k : pairs) {
      for (const std::int64_t i : {2 * k, 2 * k + 1}) {
        const double y = unit.Target(set, static_cast<std::size_t>(i));
        sum += y;
        squares += y * y;
      }
    }
    const double count = 2.0 * static_cast<double>(pairs.size());
    return std::pair(sum / count, squares / count - sum * sum / (count * count));
  };
  if (!unit.per_episode) unit.offset = moments().first;
  const double deviation = std::sqrt(std::max(moments().second, 1e-12));
  unit.scale = config.objective == PretrainObjective::kShape ? kShapeScale : 1.0 / deviation;
  unit.variance = std::max(moments().second, 1e-12);
  return unit;
}

// A sum of squared errors, and what correlations need.
struct Predictions {
  std::vector<double> f;
  std::vector<std::size_t> row;
};

Predictions Predict(const ValueBranch& branch, const PrefixSet& set,
                    const std::vector<std::int64_t>& pairs) {
  Predictions result;
  for (const std::int64_t k : pairs) {
    result.row.push_back(static_cast<std::size_t>(2 * k));
    result.row.push_back(static_cast<std::size_t>(2 * k + 1));
  }
  MlpTape tape(branch.spec(), kEvaluationBatch);
  Eigen::MatrixXf batch(set.features.rows(), kEvaluationBatch);
  for (std::size_t start = 0; start < result.row.size(); start += kEvaluationBatch) {
    const std::size_t n = std::min<std::size_t>(kEvaluationBatch, result.row.size() - start);
    for (std::size_t i = 0; i < n; ++i) {
      batch.col(static_cast<Index>(i)) =
          set.features.col(static_cast<Index>(result.row[start + i]));
    }
    const auto f = branch.Forward(batch.leftCols(static_cast<Index>(n)), tape);
    for (std::size_t i = 0; i < n; ++i) {
      result.f.push_back(static_cast<double>(f(0, static_cast<Index>(i))));
    }
  }
  return result;
}

// F is in value units; y in training units.
double ErrorOf(const Predictions& p, const PrefixSet& set, const TargetUnit& unit) {
  double squares = 0.0;
  for (std::size_t i = 0; i < p.row.size(); ++i) {
    const double centred = unit.per_episode ? p.f[i] : p.f[i] - unit.offset;
    const double e = centred * unit.scale - unit.Target(set, p.row[i]);
    squares += e * e;
  }
  return squares / static_cast<double>(p.row.size()) / unit.variance;
}

void AddCorrelations(const Predictions& p, const PrefixSet& set, PretrainFigures& figures) {
  std::vector<double> value;
  std::map<std::int32_t, std::array<double, 3>> means;  // sums of F and V, count
  for (std::size_t i = 0; i < p.row.size(); ++i) {
    value.push_back(set.value[p.row[i]]);
    std::array<double, 3>& sum = means[set.episode[p.row[i]]];
    sum[0] += p.f[i];
    sum[1] += value[i];
    sum[2] += 1.0;
  }
  figures["rank_correlation"] = SpearmanCorrelation(p.f, value);
  std::vector<double> centred_f;
  std::vector<double> centred_value;
  for (std::size_t i = 0; i < p.row.size(); ++i) {
    const std::array<double, 3>& sum = means[set.episode[p.row[i]]];
    centred_f.push_back(p.f[i] - sum[0] / sum[2]);
    centred_value.push_back(value[i] - sum[1] / sum[2]);
  }
  figures["centred_rank_correlation"] = SpearmanCorrelation(centred_f, centred_value);
  std::vector<double> step_f;
  std::vector<double> step_value;
  for (std::size_t i = 0; i + 1 < p.row.size(); i += 2) {
    step_f.push_back(p.f[i + 1] - p.f[i]);
    step_value.push_back(value[i + 1] - value[i]);
  }
  figures["difference_correlation"] = PearsonCorrelation(step_f, step_value);
}

std::vector<std::uint8_t> ActiveInputs(const PrefixSet& set,
                                       const std::vector<std::int64_t>& pairs) {
  std::vector<std::uint8_t> active(static_cast<std::size_t>(set.features.rows()), 0);
  for (const std::int64_t k : pairs) {
    for (const Index c : {static_cast<Index>(2 * k), static_cast<Index>(2 * k + 1)}) {
      for (Index i = 0; i < set.features.rows(); ++i) {
        if (set.features(i, c) != 0.0F) active[static_cast<std::size_t>(i)] = 1;
      }
    }
  }
  return active;
}

Lift::Ptr LiftOf(const PretrainConfig& config) {
  return config.control == PretrainControl::kUnaligned ? UnalignedLift(config.lift)
                                                       : CompactLift(config.lift);
}

BranchShape ShapeOf(const PretrainConfig& config) {
  return {config.width, config.layers, config.layer_norm};
}

FeatureSet FeaturesOf(const PretrainConfig& config) {
  return config.control == PretrainControl::kObservationOnly ? FeatureSet::kState : config.features;
}

BranchInfo InfoOf(const PretrainConfig& config, ArtefactTexts made) {
  const Lift::Ptr lift = LiftOf(config);
  made["target"] = EnumName(config.target);
  made["control"] = EnumName(config.control);
  made["updates"] = std::to_string(config.updates);
  return {.lift = lift->id(),
          .lift_kind = std::string(LiftKindName(lift->kind())),
          .features = MatrixFeatureOptions::Of(FeaturesOf(config)),
          .made = std::move(made)};
}

ValueBranch NewBranch(const PretrainConfig& config, const PrefixSet& train,
                      const std::vector<std::int64_t>& pairs, const PretrainJob& job) {
  BranchInfo info = InfoOf(config, job.made);
  MSRL_CHECK_EQ(train.matrix_features, MatrixFeatures(LiftOf(config), info.features).size());
  ValueBranch branch(static_cast<int>(train.features.rows()), ShapeOf(config), std::move(info));
  Rng init(job.seed, "init");
  branch.Init(init);
  if (config.silence) branch.Silence(ActiveInputs(train, pairs));
  return branch;
}

// The family inputs in a target.
std::vector<float> TargetIdentity(const PretrainConfig& config, const PrefixSet& set) {
  std::vector<float> inputs(static_cast<std::size_t>(set.identity_features), 0.0F);
  if (config.target_family.empty()) return inputs;
  const auto found = std::find(set.sources.begin(), set.sources.end(), config.target_family);
  if (config.control != PretrainControl::kIdentity || found == set.sources.end()) {
    throw UserError(StrCat("target_family=", config.target_family,
                           " needs control=identity and a family of the data",
                           DidYouMean(config.target_family, set.sources)));
  }
  inputs[static_cast<std::size_t>(found - set.sources.begin())] = 1.0F;
  return inputs;
}

class Training : public Pretraining {
 public:
  Training(const PretrainConfig& config, const PrefixSet& set, const PrefixSet& held_out,
           const PretrainJob& job)
      : config_(config),
        set_(set),
        held_out_(held_out),
        job_(job),
        identity_(TargetIdentity(config, set)),
        pairs_(PairsOf(set, job.sources)),
        answers_(pairs_),
        unit_(FindUnit(config, set, pairs_)),
        rng_(job.seed, "batches"),
        noise_rng_(job.seed, "noise"),
        branch_(NewBranch(config, set, pairs_, job)),
        tape_(branch_.spec(), config.batch),
        adam_(branch_.network().parameter_count(), {.weight_decay = config.weight_decay}),
        gradients_(branch_.network().parameter_count()),
        batch_(set.features.rows(), config.batch),
        noise_(static_cast<std::size_t>(batch_.size())),
        d_f_(1, config.batch) {
    if (config.control == PretrainControl::kShuffled) {
      Rng shuffle(job.seed, "shuffle");
      Shuffle(shuffle, answers_);
    }
  }

  int done() const override { return done_; }
  int total() const override { return config_.updates; }

  void Advance() override {
    const int pairs = config_.batch / 2;
    for (int k = 0; k < pairs; ++k) {
      const auto draw = static_cast<std::size_t>(rng_.Index(std::ssize(pairs_)));
      const Index column = static_cast<Index>(2 * pairs_[draw]);
      batch_.middleCols(2 * k, 2) = set_.features.middleCols(column, 2);
      answer_.push_back(static_cast<std::size_t>(2 * answers_[draw]));
    }
    if (config_.feature_noise > 0.0) {
      FillNormal(noise_rng_, noise_);
      const Eigen::Map<const Eigen::ArrayXXf> z(noise_.data(), batch_.rows(), batch_.cols());
      batch_.array() *= 1.0F + static_cast<float>(config_.feature_noise) * z;
    }
    const auto f = branch_.Forward(batch_, tape_);
    const float mean = 1.0F / static_cast<float>(config_.batch);
    for (int k = 0; k < pairs; ++k) {
      const std::size_t i = answer_[static_cast<std::size_t>(k)];
      const auto e1 = static_cast<float>(f(0, 2 * k) - unit_.Target(set_, i));
      const auto e2 = static_cast<float>(f(0, 2 * k + 1) - unit_.Target(set_, i + 1));
      float weight = mean;
      if (config_.inverse_variance) {
        const double variance = set_.episode_variance[i] * unit_.scale * unit_.scale;
        weight *= static_cast<float>(0.1 / (variance + 0.01));
      }
      // F jumps once, where the first step makes a matrix out of nothing
      const bool jump = set_.steps[i] == 0;
      const float gap = static_cast<float>(set_.steps[i + 1] - set_.steps[i]);
      const float tie = jump ? 0.0F : static_cast<float>(config_.difference) / gap;
      d_f_(0, 2 * k) = 2.0F * weight * (e1 - tie * (e2 - e1));
      d_f_(0, 2 * k + 1) = 2.0F * weight * (e2 + tie * (e2 - e1));
    }
    answer_.clear();
    branch_.Backward(d_f_, tape_, gradients_);
    const double share = static_cast<double>(done_) / config_.updates;
    const double factor =
        config_.decay_learning_rate ? 0.5 * (1.0 + std::cos(std::numbers::pi * share)) : 1.0;
    adam_.Step(branch_.network().parameters(), gradients_, config_.learning_rate * factor);
    ++done_;
  }

  PretrainResult Finish() override {
    ValueBranch branch = branch_;
    branch.Rescale(1.0 / unit_.scale, unit_.per_episode ? 0.0 : unit_.offset);
    PretrainFigures figures;
    figures["train_error"] =
        ErrorOf(Predict(branch, set_, Thin(pairs_, kMaxEvaluationPairs / 4)), set_, unit_);
    const Predictions held_out =
        Predict(branch, held_out_, Thin(PairsOf(held_out_, job_.sources), kMaxEvaluationPairs));
    figures["validation_error"] = ErrorOf(held_out, held_out_, unit_);
    AddCorrelations(held_out, held_out_, figures);
    if (!identity_.empty()) branch = branch.WithRestFixed(identity_);
    return {branch.Encode(), std::move(figures)};
  }

  void Visit(const Archive& state) override {
    state.Int("done", done_, 0, config_.updates);
    state.Random("batches", rng_);
    state.Random("noise", noise_rng_);
    state.Array("parameters", branch_.network().parameters());
    state.Array("adam_mean", adam_.mean());
    state.Array("adam_variance", adam_.variance());
    if (state.loading()) adam_.set_step_count(done_);
  }

 private:
  const PretrainConfig& config_;
  const PrefixSet& set_;
  const PrefixSet& held_out_;
  PretrainJob job_;
  std::vector<float> identity_;
  std::vector<std::int64_t> pairs_;
  std::vector<std::int64_t> answers_;  // whose values each pair is taught
  TargetUnit unit_;
  Rng rng_;
  Rng noise_rng_;
  ValueBranch branch_;
  MlpTape tape_;
  Adam adam_;
  FloatBuffer gradients_;
  Eigen::MatrixXf batch_;
  FloatBuffer noise_;
  Eigen::MatrixXf d_f_;
  std::vector<std::size_t> answer_;
  int done_ = 0;
};

}  // namespace

PretrainConfig PretrainConfig::For(std::string_view objective) {
  PretrainConfig config;
  SetField(config, "objective", objective);
  if (config.objective == PretrainObjective::kShape) {
    config.target = ValueTarget::kExpert;
    config.centre = true;
    config.inverse_variance = true;
    config.difference = 100.0;
    config.feature_noise = 0.1;
  }
  return config;
}

PrefixSetOptions TrainingPrefixes(const PretrainConfig& config) {
  RequireInRange(config);
  PrefixSetOptions options;
  options.lift = config.lift;
  options.features = MatrixFeatureOptions::Of(FeaturesOf(config));
  switch (config.control) {
    case PretrainControl::kUnaligned:
      options.view = PrefixView::kUnaligned;
      break;
    case PretrainControl::kLastState:
    case PretrainControl::kObservationOnly:
      options.view = PrefixView::kLastState;
      break;
    case PretrainControl::kNone:
    case PretrainControl::kShuffled:
    case PretrainControl::kIdentity:
      options.view = PrefixView::kMatrix;
      break;
  }
  options.identity = config.control == PretrainControl::kIdentity;
  options.oracle = config.oracle;
  options.target = config.target;
  options.pairs_per_episode = config.pairs_per_episode;
  options.max_gap = config.max_gap;
  options.gap_one_share = config.gap_one_share;
  options.segments = config.segments;
  return options;
}

PrefixSetOptions ValidationPrefixes(const PretrainConfig& config) {
  PrefixSetOptions options = TrainingPrefixes(config);
  options.min_steps = config.validation_min_steps;
  options.segments = 0.0;  // agents have prefixes
  options.seed = 1;
  return options;
}

PrefixSet HeldOutPrefixes(const PretrainConfig& config, const EpisodeFile& train,
                          const EpisodeFile& held_out) {
  const PrefixSetOptions options = ValidationPrefixes(config);
  const bool fitted =
      config.target == ValueTarget::kFitted || config.target == ValueTarget::kRegression;
  if (!fitted) return MakePrefixSet(held_out, options);
  EpisodeFile valued = held_out;
  FittedValue(train).AddTo(valued);
  return MakePrefixSet(valued, options);
}

std::vector<PretrainColumn> ValueBranchPretrainer::Columns() {
  return {{"train_error", "train error"},
          {"validation_error", "validation error"},
          {"rank_correlation", "rank correlation"},
          {"centred_rank_correlation", "centred rank"},
          {"difference_correlation", "difference"}};
}

std::optional<PaperFigure> ValueBranchPretrainer::Paper(std::string_view source,
                                                        std::string_view column) {
  return FindPaperFigure("pretraining", source, column);
}

PretrainConfig ValueBranchPretrainer::Configure(std::span<const std::string> settings) {
  constexpr std::string_view kObjective = "objective=";
  PretrainConfig config;
  for (const std::string& setting : settings) {
    if (setting.starts_with(kObjective)) {
      config = PretrainConfig::For(std::string_view(setting).substr(kObjective.size()));
    }
  }
  for (const std::string& setting : settings) SetField(config, setting);
  return config;
}

ArtefactHeader ValueBranchPretrainer::Announce(const PretrainConfig& config) {
  if (config.oracle != Oracle::kNone) throw UserError("a network with oracle inputs is no branch");
  const BranchInfo info = InfoOf(config, {});
  return ValueBranch::HeaderOf(MatrixFeatures(LiftOf(config), info.features).size(),
                               ShapeOf(config), info);
}

ValueBranchPretrainer::ValueBranchPretrainer(const PretrainConfig& config, PrefixSet train,
                                             PrefixSet held_out)
    : config_(config), train_(std::move(train)), held_out_(std::move(held_out)) {
  RequireInRange(config_);
}

ValueBranchPretrainer::ValueBranchPretrainer(const PretrainConfig& config, const EpisodeFile& train,
                                             const EpisodeFile& held_out)
    : ValueBranchPretrainer(config, MakePrefixSet(train, TrainingPrefixes(config)),
                            HeldOutPrefixes(config, train, held_out)) {}

std::unique_ptr<Pretraining> ValueBranchPretrainer::Start(const PretrainJob& job) const {
  return std::make_unique<Training>(config_, train_, held_out_, job);
}

}  // namespace msrl
