// Teaches a GoalReading on source episodes whose goals are taken out of Z.
#ifndef MSRL_TRANSFER_GOAL_READING_PRETRAINER_H_
#define MSRL_TRANSFER_GOAL_READING_PRETRAINER_H_

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "msrl/transfer/pretrainer.h"
#include "msrl/value/goal_reading.h"

namespace msrl {

enum class ReadingControl { kNone, kShuffled };
constexpr auto EnumNames(ReadingControl) { return Names("none", "shuffled"); }

// What the hidden thing is: which source episodes are learned from.
enum class HiddenGoal { kPlace, kVelocity };
constexpr auto EnumNames(HiddenGoal) { return Names("place", "velocity"); }

// Which of them: all, or those whose reward is minus a distance and tells the goal at every step.
enum class ReadingRewards { kAll, kDistance };
constexpr auto EnumNames(ReadingRewards) { return Names("all", "distance"); }

// The goal's offset from the present state (slots 2 and 3), told from features of Z without slots
// 2, 3 and 7. Prefixes of all lengths. With e the error of one of them and s = `error_unit`:
//   loss = mean of s^2 log(1 + |e|^2 / s^2)
// which is |e|^2 for small errors: where Z tells the goal exactly, the answer is to be exact, and
// prefixes that don't tell it hardly disturb that. s = 0: |e|^2.
struct GoalReadingConfig {
  HiddenGoal goal = HiddenGoal::kPlace;
  ReadingRewards rewards = ReadingRewards::kDistance;
  ReadingControl control = ReadingControl::kNone;
  LiftKind lift = LiftKind::kCompactSquares;
  FeatureSet features = FeatureSet::kSelectedRegressions;
  int width = 64;
  int layers = 2;
  bool layer_norm = true;
  int updates = 20000;
  int batch = 256;
  double learning_rate = 1e-3;
  double weight_decay = 0.01;
  double feature_noise = 0.01;
  double error_unit = 0.05;
  int prefixes_per_episode = 8;

  template <typename V>
  void Fields(V&& visit) {
    visit("goal", goal, "whether places or velocities are hidden");
    visit("rewards", rewards,
          "whether all places teach, or only rewards that are minus a distance");
    visit("control", control, "what is broken on purpose: goals of other episodes are taught");
    visit("lift", lift, "what Z is made of", kCompactLifts);
    visit("features", features, "what the network sees of Z");
    visit("width", width, "units per hidden layer", Between(1, BranchShape::kMaxWidth));
    visit("layers", layers, "hidden layers", Between(1, BranchShape::kMaxLayers));
    visit("layer_norm", layer_norm, "normalise hidden layers");
    visit("updates", updates, "gradient steps", NotNegative());
    visit("batch", batch, "prefixes per gradient step", Between(1, 65'536));
    visit("learning_rate", learning_rate, "step size of AdamW, down to zero along half a cosine",
          Between(0, 1).OpenBelow());
    visit("weight_decay", weight_decay, "decoupled weight decay", NotNegative());
    visit("feature_noise", feature_noise, "relative noise on every feature", NotNegative());
    visit("error_unit", error_unit,
          "error beyond which a prefix counts less; 0: squared errors throughout", NotNegative());
    visit("prefixes_per_episode", prefixes_per_episode, "prefixes taken from each episode",
          AtLeast(1));
  }
};

// Prefixes with the goal's offset from where they end; one column each.
struct ReadingSet {
  Eigen::MatrixXf features;
  Eigen::Matrix2Xf offset;
  std::vector<std::int32_t> steps;
  std::vector<std::int32_t> source;
  std::vector<std::string> sources;
};

// Figures: share of the offset's variance that is told (R^2) on held-out instances, of all prefixes
// and of those with at least 1, 6, 16 and 41 steps.
class GoalReadingPretrainer : public Pretrainer {
 public:
  static GoalReadingConfig Configure(std::span<const std::string> settings);
  static std::vector<PretrainColumn> Columns();
  static std::optional<PaperFigure> Paper(std::string_view, std::string_view) { return {}; }
  // It learns no values, but episodes have some; these cost nothing.
  static std::vector<ValueTarget> Targets(const GoalReadingConfig&) {
    return {ValueTarget::kMonteCarlo};
  }
  static ArtefactHeader Announce(const GoalReadingConfig& config);

  GoalReadingPretrainer(const GoalReadingConfig& config, const EpisodeFile& train,
                        const EpisodeFile& held_out);

  std::unique_ptr<Pretraining> Start(const PretrainJob& job) const override;
  std::pair<std::int64_t, std::int64_t> examples() const override {
    return {train_.features.cols(), held_out_.features.cols()};
  }

 private:
  GoalReadingConfig config_;
  ReadingSet train_, held_out_;
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_GOAL_READING_PRETRAINER_H_
