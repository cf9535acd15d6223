#include "msrl/transfer/tdmpc_pretrainer.h"

#include <Eigen/Cholesky>
#include <algorithm>

#include "msrl/core/check.h"
#include "msrl/nn/random.h"

namespace msrl {
namespace {

constexpr int kMeasureColumns = 256;
constexpr int kMeasureBatches = 16;  // 4,096 states
constexpr double kProbeRidge = 1e-6;

LatentLossSettings LossesOf(const TdMpcPretrainConfig& config, double gamma) {
  LatentLossSettings settings{config};
  settings.batch_size = config.batch;
  settings.horizon = config.horizon;
  settings.gamma = gamma;
  settings.lessons = true;
  settings.clone_weight = config.clone_weight;
  return settings;
}

// The number that each task of the data has among the sources of a job.
std::vector<float> NumbersOf(const SourceSequences& set, const std::vector<std::string>& sources) {
  std::vector<float> numbers;
  for (const std::string& task : set.tasks()) {
    numbers.push_back(static_cast<float>(std::ranges::find(sources, task) - sources.begin()));
  }
  return numbers;
}

// What a model says of states of some episodes.
class Measurement {
 public:
  // Draws the states.
  Measurement(LatentModel& model, const SourceSequences& set,
              const std::vector<std::string>& sources, Rng rng)
      : sampler_(set, sources), numbers_(NumbersOf(set, sources)), rng_(std::move(rng)) {
    constexpr auto kFrozen = ParameterUse::kFrozen;
    task_ = graph_.Input(1, kMeasureColumns);
    before_ = graph_.Input(kStateChannels, kMeasureColumns);
    after_ = graph_.Input(kStateChannels, kMeasureColumns);
    actions_ = graph_.Input(kActionCodeSize, kOpenLoopSteps * kMeasureColumns);
    const LatentModel::Context context{.task = model.Task(graph_, task_, kFrozen), .mask = {}};
    z_ = model.Encode(graph_, before_, context, kFrozen);
    later_z_ = model.Encode(graph_, after_, context, kFrozen);
    predicted_z_ = z_;
    for (int t = 0; t < kOpenLoopSteps; ++t) {
      const Node action = graph_.SliceColumns(actions_, t * kMeasureColumns, kMeasureColumns);
      const Node x = model.Input(graph_, predicted_z_, action, context);
      if (t == 0) {
        reward_ = model.Decode(graph_, model.Reward(graph_, x, kFrozen));
        value_ = graph_.MeanRows(model.Decode(graph_, model.Values(graph_, x, kFrozen)));
      }
      predicted_z_ = model.Next(graph_, x, kFrozen);
    }
    graph_.Finish();
    for (int i = 0; i < kMeasureBatches; ++i) Add();
  }

  double value_r2() const { return ShareTold(values_, labels_); }
  double reward_r2() const { return ShareTold(rewards_, true_rewards_); }
  double open_loop() const { return errors_ / std::max(1e-12, still_); }

  // Slots told by latent states, linear: W z + b by least squares.
  using Probe = Eigen::MatrixXd;
  Probe FitProbe() const {
    const Eigen::Index n = moments_.rows() - kGeometrySize;
    Eigen::MatrixXd inputs = moments_.topLeftCorner(n, n);
    inputs.diagonal().array() += kProbeRidge * inputs.trace() / static_cast<double>(n);
    return inputs.ldlt().solve(moments_.topRightCorner(n, kGeometrySize)).transpose();
  }
  // The squared error of the slots that a probe reads off predicted states, over that of "nothing
  // changes".
  double OpenLoopSlots(const Probe& probe) const {
    SlotErrors errors;
    for (Eigen::Index i = 0; i < predicted_.cols(); ++i) {
      const Eigen::VectorXd told = probe * predicted_.col(i).cast<double>();
      errors.Add(told, slots_before_.col(i), slots_after_.col(i));
    }
    return errors.ratio();
  }

 private:
  void Add() {
    const Eigen::Index first = predicted_.cols();
    for (Eigen::Index i = 0; i < kMeasureColumns; ++i) {
      const auto [sequence, time] = sampler_.Draw(rng_, kOpenLoopSteps);
      graph_.input(task_)(0, i) = numbers_[static_cast<std::size_t>(sequence->task)];
      graph_.input(before_).col(i) = sequence->x().col(time);
      graph_.input(after_).col(i) = sequence->x().col(time + kOpenLoopSteps);
      for (Eigen::Index t = 0; t < kOpenLoopSteps; ++t) {
        graph_.input(actions_).col(t * kMeasureColumns + i) =
            sequence->u().col(time + t).head(kActionCodeSize);
      }
      labels_.push_back(static_cast<double>(sequence->label[time]));
      true_rewards_.push_back(static_cast<double>(sequence->r()(0, time)));
    }
    graph_.Forward();
    const auto z = graph_.value(z_);
    const auto later = graph_.value(later_z_);
    const auto predicted = graph_.value(predicted_z_);
    for (const float value : graph_.value(value_).row(0)) values_.push_back(value);
    for (const float value : graph_.value(reward_).row(0)) rewards_.push_back(value);
    errors_ += static_cast<double>((predicted - later).squaredNorm());
    still_ += static_cast<double>((z - later).squaredNorm());

    const auto append = [first](Eigen::MatrixXf& all, const auto& columns) {
      all.conservativeResize(columns.rows(), first + columns.cols());
      all.rightCols(columns.cols()) = columns;
    };
    append(predicted_, predicted);
    append(slots_before_, graph_.value(before_));
    append(slots_after_, graph_.value(after_));
    // second moments of [z; x]; the groups of z have the sum one, which is the constant
    Eigen::MatrixXd joint(z.rows() + kGeometrySize, z.cols());
    joint << z.cast<double>(), graph_.value(before_).topRows(kGeometrySize).cast<double>();
    if (moments_.size() == 0) moments_.setZero(joint.rows(), joint.rows());
    moments_ += joint * joint.transpose();
  }

  SourceSampler sampler_;
  std::vector<float> numbers_;
  Rng rng_;
  StaticGraph graph_;
  Node task_, before_, after_, actions_;
  Node z_, later_z_, predicted_z_, reward_, value_;
  std::vector<double> values_, labels_, rewards_, true_rewards_;
  double errors_ = 0.0;
  double still_ = 0.0;
  Eigen::MatrixXf predicted_, slots_before_, slots_after_;
  Eigen::MatrixXd moments_;
};

class Training : public Pretraining {
 public:
  Training(const TdMpcPretrainConfig& config, const SourceSequences& train,
           const SourceSequences& held_out, const PretrainJob& job)
      : config_(config),
        train_(train),
        held_out_(held_out),
        job_(job),
        sampler_(train, job.sources),
        numbers_(NumbersOf(train, job.sources)),
        rng_(job.seed, "batches"),
        model_(SlotModel(config.sizes, static_cast<int>(job.sources.size())),
               Rng(job.seed, "init")),
        learner_(model_, LossesOf(config, train.gamma()), Rng(job.seed, "noise")),
        batch_(
            Replay(
                {.capacity = 2, .observation_size = kStateChannels, .action_size = kActionCodeSize})
                .MakeSequences(config.batch, config.horizon)),
        told_(TellersOf(train, config.control, job.seed)) {
    lesson_.task.resize(config.batch);
    lesson_.mask.resize(kActionCodeSize, config.batch);
    lesson_.label.resize(config.batch * config.horizon);
  }

  int done() const override { return done_; }
  int total() const override { return UpdatesOf(config_.control, config_.updates); }

  void Advance() override {
    lesson_.label_share =
        done_ < config_.label_updates * config_.updates ? 1.0 : config_.label_share;
    for (Eigen::Index b = 0; b < batch_.sequences(); ++b) {
      const auto [sequence, time] = sampler_.Draw(rng_, /*rest=*/1);
      const auto index = static_cast<std::size_t>(sequence - train_.sequences().data());
      FillSequence(*sequence, *told_[index], time, b, batch_, lesson_);
      lesson_.task[b] = numbers_[static_cast<std::size_t>(sequence->task)];
    }
    learner_.UpdateOn(batch_, lesson_);
    ++done_;
  }

  PretrainResult Finish() override {
    const auto measure = [this](const SourceSequences& set, const char* stream) {
      return Measurement(model_, set, job_.sources, Rng(job_.seed, stream));
    };
    const Measurement train = measure(train_, "train-states");
    const Measurement held_out = measure(held_out_, "held-out-states");
    PretrainFigures figures;
    figures["train_r2"] = train.value_r2();
    figures["r2"] = held_out.value_r2();
    figures["reward_r2"] = held_out.reward_r2();
    figures["open_loop"] = held_out.open_loop();
    figures["open_loop_x"] = held_out.OpenLoopSlots(train.FitProbe());
    return {EncodeModel(model_, HeaderOf(config_.sizes, WorldModelTexts(config_, job_.made))),
            std::move(figures)};
  }

  void Visit(const Archive& state) override {
    state.Int("done", done_, 0, total());
    state.Random("batches", rng_);
    model_.Visit(state.Child("model"));
    learner_.Visit(state.Child("learner"));
  }

 private:
  const TdMpcPretrainConfig& config_;
  const SourceSequences& train_;
  const SourceSequences& held_out_;
  PretrainJob job_;
  SourceSampler sampler_;
  std::vector<float> numbers_;
  Rng rng_;
  LatentModel model_;
  LatentLearner learner_;
  SequenceBatch batch_;
  SourceLesson lesson_;
  std::vector<const SourceSequence*> told_;  // whose rewards and labels every episode is taught
  int done_ = 0;
};

}  // namespace

void FillSequence(const SourceSequence& sequence, const SourceSequence& told, Index time,
                  Eigen::Index b, SequenceBatch& batch, SourceLesson& lesson) {
  const Index last = sequence.horizon();
  lesson.mask.col(b) = sequence.u().col(time).tail(kActionCodeSize);
  batch.observation.col(b) = sequence.x().col(time);
  for (Eigen::Index k = 0; k < batch.length(); ++k) {
    const Eigen::Index column = batch.Column(k) + b;
    const Index t = time + k;
    const bool inside = t < last;
    const Index of = std::min(t, told.horizon() - 1);
    batch.observation.col(column + batch.sequences()) = sequence.x().col(std::min(t + 1, last));
    batch.inside[column] = inside ? 1.0F : 0.0F;
    batch.continues[column] = t + 1 == last && sequence.terminated ? 0.0F : 1.0F;
    batch.reward[column] = inside ? told.r()(0, of) : 0.0F;
    lesson.label[column] = inside ? told.label[of] : 0.0F;
    if (inside) {
      batch.action.col(column) = sequence.u().col(t).head(kActionCodeSize);
    } else {
      batch.action.col(column).setZero();
    }
  }
}

TdMpcPretrainConfig TdMpcPretrainer::Configure(std::span<const std::string> settings) {
  TdMpcPretrainConfig config;
  for (const std::string& setting : settings) SetField(config, setting);
  return config;
}

std::vector<PretrainColumn> TdMpcPretrainer::Columns() {
  return {{"train_r2", "train R2"},
          {"r2", "R2"},
          {"reward_r2", "reward R2"},
          {"open_loop", "open loop"},
          {"open_loop_x", "open loop, slots"}};
}

ArtefactHeader TdMpcPretrainer::Announce(const TdMpcPretrainConfig& config) {
  return HeaderOf(config.sizes, WorldModelTexts(config, {}));
}

TdMpcPretrainer::TdMpcPretrainer(const TdMpcPretrainConfig& config, const EpisodeFile& train,
                                 const EpisodeFile& held_out)
    : config_(RequireInRange(config)),
      train_(train, config.target),
      held_out_(held_out, config.target, train, train_) {}

std::unique_ptr<Pretraining> TdMpcPretrainer::Start(const PretrainJob& job) const {
  return std::make_unique<Training>(config_, train_, held_out_, job);
}

}  // namespace msrl
