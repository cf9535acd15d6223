// Source pretraining of the modules of transfer baselines (msrl/agents/host): the same episodes,
// labels, draws and number of updates for all of them. What a method adds is a ModuleTask.
#ifndef MSRL_TRANSFER_MODULE_PRETRAINER_H_
#define MSRL_TRANSFER_MODULE_PRETRAINER_H_

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/agents/host/value_module.h"
#include "msrl/core/check.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/transfer/source_sequences.h"

namespace msrl {

enum class ModuleControl {
  kNone,
  kRandom,    // nothing is learned
  kShuffled,  // every episode is taught the labels and rewards of another
  kPermuted,  // entries of action codes change places
};
constexpr auto EnumNames(ModuleControl) {
  return Names("none", "random", "shuffled", "permuted");  // a word
}

struct ModulePretrainConfig {
  ValueTarget target = ValueTarget::kFitted;
  ModuleControl control = ModuleControl::kNone;
  int updates = 30'000;
  int windows = 32;
  double learning_rate = 3e-4;
  double weight_decay = 1e-4;
  int validation_windows = 2048;

  template <typename V>
  void Fields(V&& visit) {
    visit("target", target, "value of a state that is taught");
    visit("control", control, "what is broken on purpose");
    visit("updates", updates, "gradient steps", NotNegative());
    visit("windows", windows, "windows of 16 states per gradient step", Between(1, 4096));
    visit("learning_rate", learning_rate, "step size of AdamW, down to zero along half a cosine",
          Between(0, 1).OpenBelow());
    visit("weight_decay", weight_decay, "decoupled weight decay", NotNegative());
    visit("validation_windows", validation_windows, "windows that figures are measured on",
          Between(2, 1'000'000));
  }
};

// Where a window begins.
struct DrawnPlace {
  const SourceSequence* sequence = nullptr;
  Index first = 0;
};

// Windows as they are drawn: one column per state, those of window w from w * kTrainingLength on.
struct DrawnWindows {
  explicit DrawnWindows(int count)
      : channels(kChannels, count * ValueModule::kTrainingLength),
        label(count * ValueModule::kTrainingLength),
        reward(count * ValueModule::kTrainingLength),
        states(static_cast<std::size_t>(count)),
        place(static_cast<std::size_t>(count)) {}

  int count() const { return static_cast<int>(states.size()); }

  Eigen::MatrixXf channels;
  Eigen::RowVectorXf label;
  Eigen::RowVectorXf reward;  // of the step from the state; 0 after the last
  std::vector<int> states;    // of each window, at most kTrainingLength; filling follows
  std::vector<DrawnPlace> place;
};

// How a module is taught.
class ModuleLesson {
 public:
  virtual ~ModuleLesson() = default;
  // A gradient step on what was drawn, the `done`-th from 0 on. RunError if a number goes bad.
  virtual void Learn(const DrawnWindows& drawn, int done, double learning_rate) = 0;
  // After the last: the module becomes what the artefact has.
  virtual void Finish() {}
  // What later steps depend on besides the module's parameters.
  virtual void Visit(const Archive& /*state*/) {}
};

// What a method adds to the common pretraining.
class ModuleTask {
 public:
  virtual ~ModuleTask() = default;
  // The same numbers for equal options and streams.
  virtual std::unique_ptr<ValueModule> MakeModule(const ParameterOptions& options,
                                                  Rng& rng) const = 0;
  // May teach a window something else that the same steps show. `sequence` is the window's, from
  // state `first` on.
  virtual void Relabel(Rng& /*rng*/, const SourceSequence& /*sequence*/, Index /*first*/,
                       int /*window*/, DrawnWindows& /*drawn*/) const {}
  // `windows` are taught at a time, of the families `sources`; by the module's own loss on labels
  // unless a method has another way.
  virtual std::unique_ptr<ModuleLesson> MakeLesson(ValueModule& module, int windows,
                                                   const std::vector<std::string>& sources) const;
  // V of the last states of windows, and of what was done there.
  virtual Eigen::RowVectorXf Values(ValueModule& module, const DrawnWindows& windows) const;
  // Figures of its own on held-out windows, by the keys of its columns.
  virtual PretrainFigures Figures(ValueModule& /*module*/, const SourceSampler& /*held_out*/,
                                  const DrawnWindows& /*windows*/) const {
    return {};
  }
};

// What is said of the last states of drawn windows.
struct SlotsAtEnds {
  Eigen::MatrixXf z;
  Eigen::RowVectorXf value;
};
SlotsAtEnds ReadEnds(ValueModule& module, const DrawnWindows& windows);
Eigen::RowVectorXf ValuesAtEnds(ValueModule& module, const DrawnWindows& windows);
Eigen::RowVectorXf LabelsAtEnds(const DrawnWindows& windows);
// 1 - mean squared error / variance of the labels; 0 if they are constant.
double ExplainedVariance(const Eigen::RowVectorXf& value, const Eigen::RowVectorXf& label);
// Draws a window that ends at a state which is drawn uniformly over tasks, episodes and times.
DrawnPlace DrawWindow(const SourceSampler& sampler, Rng& rng, int window, DrawnWindows& drawn);

// The windows with everything but their last states replaced by that of other windows: figures that
// do not get worse come from the last state alone.
DrawnWindows WithOtherContexts(const DrawnWindows& windows);

// Source episodes made ready; shared by all methods.
class ModulePretrainer : public Pretrainer {
 public:
  // train_r2, r2 and rank_correlation: V against the labels of training and held-out states.
  static std::vector<PretrainColumn> CommonColumns();
  static std::optional<PaperFigure> Paper(std::string_view, std::string_view) { return {}; }

  // `header` is the artefact's without provenance.
  ModulePretrainer(const ModulePretrainConfig& config, ArtefactHeader header,
                   const EpisodeFile& train, const EpisodeFile& held_out);

  std::unique_ptr<Pretraining> Start(const PretrainJob& job) const override;
  std::pair<std::int64_t, std::int64_t> examples() const override {
    return {train_.states(), held_out_.states()};
  }

 protected:
  virtual std::unique_ptr<ModuleTask> MakeTask() const = 0;
  const SourceSequences& train() const { return train_; }

 private:
  ModulePretrainConfig config_;
  ArtefactHeader header_;
  SourceSequences train_, held_out_;
};

// Settings of a pretrainer: those of all, and of the module's shape.
template <typename Module>
struct ModuleConfigFor : ModulePretrainConfig {
  typename Module::Shape shape;

  template <typename V>
  void Fields(V&& visit) {
    ModulePretrainConfig::Fields(visit);
    shape.Fields(visit);
  }
};

// The pretrainer of a method: `Task` is made of (module shape, training sequences) and has
//   static std::vector<PretrainColumn> Columns();     // of its own
template <typename Module, typename Task>
class ModulePretrainerOf : public ModulePretrainer {
 public:
  using Config = ModuleConfigFor<Module>;

  static Config Configure(std::span<const std::string> settings) {
    Config config;
    for (const std::string& setting : settings) SetField(config, setting);
    if (config.control == ModuleControl::kPermuted && !Module::kReadsActions) {
      throw UserError("control=permuted: this module reads no actions");
    }
    return config;
  }
  static std::vector<PretrainColumn> Columns() {
    std::vector<PretrainColumn> columns = CommonColumns();
    for (const PretrainColumn& column : Task::Columns()) columns.push_back(column);
    return columns;
  }
  static std::vector<ValueTarget> Targets(const Config& config) { return {config.target}; }
  static ArtefactHeader Announce(const Config& config) {
    return ModuleHeader(Module::kKind, config.shape, {});
  }

  ModulePretrainerOf(const Config& config, const EpisodeFile& train, const EpisodeFile& held_out)
      : ModulePretrainer(RequireInRange(config), Announce(config), train, held_out),
        shape_(config.shape) {}

 protected:
  std::unique_ptr<ModuleTask> MakeTask() const override {
    return std::make_unique<Task>(shape_, train());
  }

 private:
  typename Module::Shape shape_;
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_MODULE_PRETRAINER_H_
