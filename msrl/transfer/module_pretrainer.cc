#include "msrl/transfer/module_pretrainer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "msrl/agents/common/networks.h"
#include "msrl/core/check.h"
#include "msrl/core/statistics.h"

namespace msrl {
namespace {

constexpr int kLength = ValueModule::kTrainingLength;
constexpr int kEvaluationWindows = 64;
constexpr double kMaxNorm = 10.0;

// Column t * count + w of a graph's input is column w * kLength + t of drawn windows.
void FillGraph(const DrawnWindows& drawn, StaticGraph& graph, const Windows& windows) {
  auto channels = graph.input(windows.channels);
  for (int w = 0; w < windows.count; ++w) {
    for (int t = 0; t < windows.length; ++t) {
      channels.col(t * windows.count + w) = drawn.channels.col(w * kLength + t);
    }
  }
}

// By the module's own loss.
class LabelLesson : public ModuleLesson {
 public:
  LabelLesson(ValueModule& module, int windows) : teaching_(module, windows) {}

  void Learn(const DrawnWindows& drawn, int /*done*/, double learning_rate) override {
    const int windows = drawn.count();
    FillGraph(drawn, teaching_.graph, teaching_.windows);
    auto label = teaching_.graph.input(teaching_.label);
    auto weight = teaching_.graph.input(teaching_.weight);
    auto end = teaching_.graph.input(teaching_.windows.end);
    int states = 0;
    for (const int count : drawn.states) states += count;
    for (int w = 0; w < windows; ++w) {
      const int count = drawn.states[static_cast<std::size_t>(w)];
      for (int t = 0; t < kLength; ++t) {
        label(0, t * windows + w) = drawn.label[w * kLength + t];
        weight(0, t * windows + w) = t < count ? 1.0F / static_cast<float>(states) : 0.0F;
      }
      end(0, w) = static_cast<float>((count - 1) * windows + w);
    }
    teaching_.Learn(learning_rate);
  }

 private:
  TeachingGraph teaching_;
};

class Training : public Pretraining {
 public:
  Training(const ModulePretrainConfig& config, ArtefactHeader header, const SourceSequences& train,
           const SourceSequences& held_out, const PretrainJob& job,
           std::unique_ptr<ModuleTask> task)
      : config_(config),
        header_(std::move(header)),
        task_(std::move(task)),
        sequences_(train.sequences()),
        train_(train, job.sources),
        held_out_(held_out, job.sources),
        taught_(sequences_.size()),
        rng_(job.seed, "windows"),
        module_(MakeModule(job)),
        lesson_(task_->MakeLesson(*module_, config.windows, job.sources)),
        drawn_(config.windows) {
    header_.made = job.made;
    header_.made["target"] = EnumName(config.target);
    header_.made["control"] = EnumName(config.control);
    header_.made["updates"] = std::to_string(total());
    for (std::size_t i = 0; i < taught_.size(); ++i) taught_[i] = &sequences_[i];
    if (config.control == ModuleControl::kShuffled) {
      Rng shuffle(job.seed, "shuffle");
      Shuffle(shuffle, taught_);
    }
  }

  int done() const override { return done_; }
  int total() const override {
    return config_.control == ModuleControl::kRandom ? 0 : config_.updates;
  }

  void Advance() override {
    for (int w = 0; w < config_.windows; ++w) Draw(w);
    const double share = static_cast<double>(done_) / config_.updates;
    lesson_->Learn(drawn_, done_,
                   config_.learning_rate * 0.5 * (1.0 + std::cos(std::numbers::pi * share)));
    ++done_;
  }

  PretrainResult Finish() override {
    lesson_->Finish();
    DrawnWindows known(config_.validation_windows);
    DrawnWindows unknown(config_.validation_windows);
    Rng known_rng(0, "training windows");
    Rng unknown_rng(0, "held-out windows");
    for (int w = 0; w < config_.validation_windows; ++w) {
      DrawWindow(train_, known_rng, w, known);
      DrawWindow(held_out_, unknown_rng, w, unknown);
    }
    const Eigen::RowVectorXf label = LabelsAtEnds(known);
    // what is wrong is to be as loud as what is right
    if (config_.control != ModuleControl::kNone) {
      const Eigen::RowVectorXf value = task_->Values(*module_, known);
      const auto deviation = [](const Eigen::RowVectorXf& v) {
        return std::sqrt(static_cast<double>((v.array() - v.mean()).square().mean()));
      };
      const double quiet = deviation(value);
      const double factor = quiet > 0.0 ? deviation(label) / quiet : 1.0;
      module_->RescaleValue(
          factor, static_cast<double>(label.mean()) - factor * static_cast<double>(value.mean()));
    }
    const Eigen::RowVectorXf truth = LabelsAtEnds(unknown);
    const Eigen::RowVectorXf told = task_->Values(*module_, unknown);
    const std::vector<double> truth_values(truth.begin(), truth.end());
    const std::vector<double> told_values(told.begin(), told.end());
    PretrainFigures figures = task_->Figures(*module_, held_out_, unknown);
    figures["train_r2"] = ExplainedVariance(task_->Values(*module_, known), label);
    figures["r2"] = ExplainedVariance(told, truth);
    figures["rank_correlation"] = SpearmanCorrelation(told_values, truth_values);
    return {EncodeModule(header_, *module_), std::move(figures)};
  }

  void Visit(const Archive& state) override {
    state.Int("done", done_, 0, total());
    state.Random("windows", rng_);
    VisitParameters(state.Child("module"), module_->parameters());
    lesson_->Visit(state.Child("lesson"));
  }

 private:
  std::unique_ptr<ValueModule> MakeModule(const PretrainJob& job) const {
    Rng init(job.seed, "init");
    return task_->MakeModule({.adam = {.weight_decay = config_.weight_decay, .max_norm = kMaxNorm}},
                             init);
  }

  void Draw(int w) {
    const DrawnPlace place = DrawWindow(train_, rng_, w, drawn_);
    const auto index = static_cast<std::size_t>(place.sequence - sequences_.data());
    if (taught_[index] != place.sequence) {
      // of another episode, which may be shorter
      const SourceSequence& taught = *taught_[index];
      for (int t = 0; t < kLength; ++t) {
        drawn_.label[w * kLength + t] = taught.label[(place.first + t) % taught.label.size()];
        drawn_.reward[w * kLength + t] = taught.r()(0, (place.first + t) % taught.horizon());
      }
      return;
    }
    task_->Relabel(rng_, *place.sequence, place.first, w, drawn_);
  }

  ModulePretrainConfig config_;
  ArtefactHeader header_;
  std::unique_ptr<ModuleTask> task_;
  const std::vector<SourceSequence>& sequences_;
  SourceSampler train_, held_out_;
  std::vector<const SourceSequence*> taught_;  // whose labels each episode is taught
  Rng rng_;
  std::unique_ptr<ValueModule> module_;
  std::unique_ptr<ModuleLesson> lesson_;
  DrawnWindows drawn_;
  int done_ = 0;
};

}  // namespace

std::unique_ptr<ModuleLesson> ModuleTask::MakeLesson(
    ValueModule& module, int windows, const std::vector<std::string>& /*sources*/) const {
  return std::make_unique<LabelLesson>(module, windows);
}

Eigen::RowVectorXf ModuleTask::Values(ValueModule& module, const DrawnWindows& windows) const {
  return ValuesAtEnds(module, windows);
}

DrawnPlace DrawWindow(const SourceSampler& sampler, Rng& rng, int window, DrawnWindows& drawn) {
  const SourceSampler::Place end = sampler.Draw(rng);
  const Index first = std::max<Index>(0, end.time - kLength + 1);
  const auto states = static_cast<int>(end.time - first + 1);
  const SourceSequence& sequence = *end.sequence;
  const Index column = static_cast<Index>(window) * kLength;
  drawn.states[static_cast<std::size_t>(window)] = states;
  drawn.place[static_cast<std::size_t>(window)] = {&sequence, first};
  drawn.channels.middleCols(column, states) = sequence.channels.middleCols(first, states);
  drawn.channels.middleCols(column + states, kLength - states).setZero();
  drawn.label.segment(column, states) = sequence.label.segment(first, states);
  drawn.label.segment(column + states, kLength - states).setZero();
  const Index steps = std::min<Index>(states, sequence.horizon() - first);
  drawn.reward.segment(column, kLength).setZero();
  drawn.reward.segment(column, steps) = sequence.r().middleCols(first, steps);
  return {&sequence, first};
}

SlotsAtEnds ReadEnds(ValueModule& module, const DrawnWindows& windows) {
  ReadingGraph reading(module, kEvaluationWindows);
  const int context = module.context();
  SlotsAtEnds slots{Eigen::MatrixXf(module.z_size(), windows.count()),
                    Eigen::RowVectorXf(windows.count())};
  auto channels = reading.graph.input(reading.windows.channels);
  auto end = reading.graph.input(reading.windows.end);
  for (int start = 0; start < windows.count(); start += kEvaluationWindows) {
    const int count = std::min(kEvaluationWindows, windows.count() - start);
    for (int w = 0; w < kEvaluationWindows; ++w) {
      const int from = start + std::min(w, count - 1);
      // the last `context` states of the window
      const int states = windows.states[static_cast<std::size_t>(from)];
      const int read = std::min(context, states);
      for (int t = 0; t < read; ++t) {
        channels.col(t * kEvaluationWindows + w) =
            windows.channels.col(from * kLength + states - read + t);
      }
      end(0, w) = static_cast<float>((read - 1) * kEvaluationWindows + w);
    }
    reading.Forward();
    slots.z.middleCols(start, count) = reading.graph.value(reading.slots.z).leftCols(count);
    slots.value.segment(start, count) = reading.graph.value(reading.slots.value).row(0).head(count);
  }
  return slots;
}

Eigen::RowVectorXf ValuesAtEnds(ValueModule& module, const DrawnWindows& windows) {
  return ReadEnds(module, windows).value;
}

Eigen::RowVectorXf LabelsAtEnds(const DrawnWindows& windows) {
  Eigen::RowVectorXf labels(windows.count());
  for (int w = 0; w < windows.count(); ++w) {
    labels[w] = windows.label[w * kLength + windows.states[static_cast<std::size_t>(w)] - 1];
  }
  return labels;
}

double ExplainedVariance(const Eigen::RowVectorXf& value, const Eigen::RowVectorXf& label) {
  const Eigen::RowVectorXd truth = label.cast<double>();
  const double variance = (truth.array() - truth.mean()).square().mean();
  if (variance <= 0.0) return 0.0;
  return 1.0 - (value.cast<double>() - truth).squaredNorm() / static_cast<double>(truth.size()) /
                   variance;
}

DrawnWindows WithOtherContexts(const DrawnWindows& windows) {
  DrawnWindows mixed = windows;
  // of the next window with as many states, so that nothing else changes
  for (int w = 0; w < windows.count(); ++w) {
    const int states = windows.states[static_cast<std::size_t>(w)];
    for (int k = 1; k < windows.count(); ++k) {
      const int other = (w + k) % windows.count();
      if (windows.states[static_cast<std::size_t>(other)] != states) continue;
      mixed.channels.middleCols(w * kLength, states - 1) =
          windows.channels.middleCols(other * kLength, states - 1);
      break;
    }
  }
  return mixed;
}

std::vector<PretrainColumn> ModulePretrainer::CommonColumns() {
  return {{"train_r2", "train R2"}, {"r2", "R2"}, {"rank_correlation", "rank correlation"}};
}

ModulePretrainer::ModulePretrainer(const ModulePretrainConfig& config, ArtefactHeader header,
                                   const EpisodeFile& train, const EpisodeFile& held_out)
    : config_(config),
      header_(std::move(header)),
      train_(train, config.target),
      held_out_(held_out, config.target, train, train_) {
  if (config.control == ModuleControl::kPermuted) train_.PermuteActions();
}

std::unique_ptr<Pretraining> ModulePretrainer::Start(const PretrainJob& job) const {
  return std::make_unique<Training>(config_, header_, train_, held_out_, job, MakeTask());
}

}  // namespace msrl
