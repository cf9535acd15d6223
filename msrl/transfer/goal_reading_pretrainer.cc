#include "msrl/transfer/goal_reading_pretrainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/env/instance.h"
#include "msrl/nn/adam.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

constexpr int kEvaluationBatch = 256;
constexpr Index kGoalSlots[] = {2, 3, 7};

// R^2 of prefixes with at least so many steps, by column.
struct LengthColumn {
  const char* key;
  const char* title;
  int min_steps;
};
constexpr LengthColumn kColumns[] = {{"r2", "R2", 0},
                                     {"r2_1", "R2, 1 step", 1},
                                     {"r2_6", "6 steps", 6},
                                     {"r2_16", "16 steps", 16},
                                     {"r2_41", "41 steps", 41}};

// Whether the episode has such a goal, and shows it.
bool Teaches(const StoredEpisode& episode, const GoalReadingConfig& config) {
  const auto fact = [&episode](const char* name, double otherwise) {
    const auto found = episode.facts.find(name);
    return found == episode.facts.end() ? otherwise : found->second;
  };
  const RewardRule rule{
      .style = static_cast<RewardStyle>(std::clamp(static_cast<int>(fact("style", 0.0)), 0, 5))};
  const auto mask = static_cast<unsigned>(fact("slot_mask", 255.0));
  const bool shown = (mask >> 2 & 3u) == 3u;
  if (config.goal == HiddenGoal::kVelocity) return shown && !rule.HasGoal();
  return shown && rule.HasGoal() &&
         (config.rewards == ReadingRewards::kAll || rule.style == RewardStyle::kDistance);
}

ReadingSet MakeReadingSet(const EpisodeFile& file, const GoalReadingConfig& config,
                          std::uint64_t seed) {
  const Lift::Ptr lift = CompactLift(config.lift);
  if (file.lift_id != CompactLift()->id().ToString()) {
    throw UserError(StrCat("the episodes are for lift ", file.lift_id, ", this is lift ",
                           CompactLift()->id().ToString()));
  }
  const MatrixFeatures map(lift, MatrixFeatureOptions::Of(config.features));
  std::vector<const StoredEpisode*> episodes;
  ReadingSet set;
  for (const StoredEpisode& episode : file.episodes) {
    if (!Teaches(episode, config)) continue;
    episodes.push_back(&episode);
    if (std::find(set.sources.begin(), set.sources.end(), episode.env) == set.sources.end()) {
      set.sources.push_back(episode.env);
    }
  }
  const auto count = static_cast<Index>(episodes.size()) * config.prefixes_per_episode;
  set.features.resize(map.size(), count);
  set.offset.resize(2, count);
  Rng rng(seed, "prefixes");
  Eigen::VectorXd psi(lift->m());
  Index column = 0;
  for (const StoredEpisode* const episode : episodes) {
    Segment segment = ToSegment(*episode, file.action_code_size);
    const Eigen::MatrixXd offset = segment.x.middleRows(2, 2);
    for (const Index slot : kGoalSlots) segment.x.row(slot).setZero();
    const auto source = std::find(set.sources.begin(), set.sources.end(), episode->env);
    std::vector<int> wanted(static_cast<std::size_t>(episode->horizon()) + 1, 0);
    for (int k = 0; k < config.prefixes_per_episode; ++k) {
      ++wanted[static_cast<std::size_t>(rng.Index(episode->horizon() + 1))];
    }
    SegmentMatrix z(lift);
    for (Index t = 0; t <= episode->horizon(); ++t) {
      for (int k = 0; k < wanted[static_cast<std::size_t>(t)]; ++k, ++column) {
        map.Compute(
            z, std::span(set.features.col(column).data(), static_cast<std::size_t>(map.size())));
        set.offset.col(column) = offset.col(t)
                                     .cwiseMax(-GoalReading::kReach)
                                     .cwiseMin(GoalReading::kReach)
                                     .cast<float>();
        set.steps.push_back(static_cast<std::int32_t>(t));
        set.source.push_back(static_cast<std::int32_t>(source - set.sources.begin()));
      }
      if (t == episode->horizon()) break;
      lift->Apply(segment.x.col(t), segment.a.col(t), segment.r[t], segment.x.col(t + 1), psi);
      z.AddStep(psi);
    }
  }
  return set;
}

std::vector<Index> ColumnsOf(const ReadingSet& set, const std::vector<std::string>& sources) {
  std::vector<Index> columns;
  for (Index c = 0; c < set.features.cols(); ++c) {
    const std::string& source =
        set.sources[static_cast<std::size_t>(set.source[static_cast<std::size_t>(c)])];
    if (std::find(sources.begin(), sources.end(), source) != sources.end()) columns.push_back(c);
  }
  if (columns.empty()) {
    throw UserError(StrCat("no episode of ", sources.empty() ? "any source" : sources.front(),
                           " in the data has such a goal"));
  }
  return columns;
}

BranchShape ShapeOf(const GoalReadingConfig& config) {
  return {config.width, config.layers, config.layer_norm};
}

BranchInfo InfoOf(const GoalReadingConfig& config, ArtefactTexts made) {
  const Lift::Ptr lift = CompactLift(config.lift);
  made["target"] = StrCat("goal: ", EnumName(config.goal));
  made["control"] = EnumName(config.control);
  made["updates"] = std::to_string(config.updates);
  return {.lift = lift->id(),
          .lift_kind = std::string(LiftKindName(lift->kind())),
          .features = MatrixFeatureOptions::Of(config.features),
          .made = std::move(made)};
}

class Training : public Pretraining {
 public:
  Training(const GoalReadingConfig& config, const ReadingSet& set, const ReadingSet& held_out,
           const PretrainJob& job)
      : config_(config),
        set_(set),
        held_out_(held_out),
        columns_(ColumnsOf(set, job.sources)),
        held_out_columns_(ColumnsOf(held_out, job.sources)),
        answers_(columns_),
        rng_(job.seed, "batches"),
        noise_rng_(job.seed, "noise"),
        reading_(static_cast<int>(set.features.rows()), ShapeOf(config), InfoOf(config, job.made)),
        tape_(reading_.spec(), config.batch),
        adam_(reading_.network().parameter_count(), {.weight_decay = config.weight_decay}),
        gradients_(reading_.network().parameter_count()),
        batch_(set.features.rows(), config.batch),
        wanted_(2, config.batch),
        d_out_(2, config.batch),
        noise_(static_cast<std::size_t>(batch_.size())) {
    Rng init(job.seed, "init");
    reading_.Init(init);
    std::vector<std::uint8_t> active(static_cast<std::size_t>(set.features.rows()), 0);
    for (const Index c : columns_) {
      for (Index i = 0; i < set.features.rows(); ++i) {
        if (set.features(i, c) != 0.0F) active[static_cast<std::size_t>(i)] = 1;
      }
    }
    reading_.Silence(std::move(active));
    if (config.control == ReadingControl::kShuffled) {
      Rng shuffle(job.seed, "shuffle");
      Shuffle(shuffle, answers_);
    }
  }

  int done() const override { return done_; }
  int total() const override { return config_.updates; }

  void Advance() override {
    for (int k = 0; k < config_.batch; ++k) {
      const auto draw = static_cast<std::size_t>(rng_.Index(std::ssize(columns_)));
      batch_.col(k) = set_.features.col(columns_[draw]);
      wanted_.col(k) = set_.offset.col(answers_[draw]);
    }
    if (config_.feature_noise > 0.0) {
      FillNormal(noise_rng_, noise_);
      const Eigen::Map<const Eigen::ArrayXXf> z(noise_.data(), batch_.rows(), batch_.cols());
      batch_.array() *= 1.0F + static_cast<float>(config_.feature_noise) * z;
    }
    d_out_ = reading_.Forward(batch_, tape_) - wanted_;
    const auto unit = static_cast<float>(config_.error_unit * config_.error_unit);
    for (int k = 0; k < config_.batch; ++k) {
      auto error = d_out_.col(k);
      if (unit > 0.0F) error *= unit / (unit + error.squaredNorm());
    }
    d_out_ *= 2.0F / static_cast<float>(config_.batch);
    reading_.network().Backward(d_out_, tape_, gradients_);
    const double share = static_cast<double>(done_) / config_.updates;
    adam_.Step(reading_.network().parameters(), gradients_,
               config_.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * share)));
    ++done_;
  }

  PretrainResult Finish() override {
    PretrainFigures figures;
    const Eigen::Matrix2Xf told = Tell();
    for (const LengthColumn& column : kColumns) figures[column.key] = Share(told, column.min_steps);
    return {reading_.Encode(), std::move(figures)};
  }

  void Visit(const Archive& state) override {
    state.Int("done", done_, 0, config_.updates);
    state.Random("batches", rng_);
    state.Random("noise", noise_rng_);
    state.Array("parameters", reading_.network().parameters());
    state.Array("adam_mean", adam_.mean());
    state.Array("adam_variance", adam_.variance());
    if (state.loading()) adam_.set_step_count(done_);
  }

 private:
  // What it says about the held-out prefixes.
  Eigen::Matrix2Xf Tell() const {
    const auto count = std::ssize(held_out_columns_);
    Eigen::Matrix2Xf told(2, count);
    MlpTape tape(reading_.spec(), kEvaluationBatch);
    Eigen::MatrixXf batch(held_out_.features.rows(), kEvaluationBatch);
    for (Index start = 0; start < count; start += kEvaluationBatch) {
      const Index n = std::min<Index>(kEvaluationBatch, count - start);
      for (Index i = 0; i < n; ++i) {
        batch.col(i) =
            held_out_.features.col(held_out_columns_[static_cast<std::size_t>(start + i)]);
      }
      told.middleCols(start, n) = reading_.Forward(batch.leftCols(n), tape);
    }
    return told;
  }

  double Share(const Eigen::Matrix2Xf& told, int min_steps) const {
    Eigen::Vector2d mean(0.0, 0.0);
    double squares = 0.0;
    double errors = 0.0;
    double count = 0.0;
    for (std::size_t k = 0; k < held_out_columns_.size(); ++k) {
      const Index c = held_out_columns_[k];
      if (held_out_.steps[static_cast<std::size_t>(c)] < min_steps) continue;
      const Eigen::Vector2d truth = held_out_.offset.col(c).cast<double>();
      mean += truth;
      squares += truth.squaredNorm();
      errors += (told.col(static_cast<Index>(k)).cast<double>() - truth).squaredNorm();
      count += 1.0;
    }
    if (count == 0.0) return 0.0;
    const double variance = squares / count - (mean / count).squaredNorm();
    return variance > 0.0 ? 1.0 - errors / count / variance : 0.0;
  }

  const GoalReadingConfig& config_;
  const ReadingSet& set_;
  const ReadingSet& held_out_;
  std::vector<Index> columns_, held_out_columns_;
  std::vector<Index> answers_;  // whose goal each prefix is taught
  Rng rng_;
  Rng noise_rng_;
  GoalReading reading_;
  MlpTape tape_;
  Adam adam_;
  FloatBuffer gradients_;
  Eigen::MatrixXf batch_, wanted_, d_out_;
  FloatBuffer noise_;
  int done_ = 0;
};

}  // namespace

GoalReadingConfig GoalReadingPretrainer::Configure(std::span<const std::string> settings) {
  GoalReadingConfig config;
  for (const std::string& setting : settings) SetField(config, setting);
  return config;
}

std::vector<PretrainColumn> GoalReadingPretrainer::Columns() {
  std::vector<PretrainColumn> columns;
  for (const LengthColumn& column : kColumns) columns.push_back({column.key, column.title});
  return columns;
}

ArtefactHeader GoalReadingPretrainer::Announce(const GoalReadingConfig& config) {
  const BranchInfo info = InfoOf(config, {});
  return GoalReading::HeaderOf(MatrixFeatures(CompactLift(config.lift), info.features).size(),
                               ShapeOf(config), info);
}

GoalReadingPretrainer::GoalReadingPretrainer(const GoalReadingConfig& config,
                                             const EpisodeFile& train, const EpisodeFile& held_out)
    : config_(RequireInRange(config)),
      train_(MakeReadingSet(train, config, 0)),
      held_out_(MakeReadingSet(held_out, config, 1)) {}

std::unique_ptr<Pretraining> GoalReadingPretrainer::Start(const PretrainJob& job) const {
  return std::make_unique<Training>(config_, train_, held_out_, job);
}

}  // namespace msrl
