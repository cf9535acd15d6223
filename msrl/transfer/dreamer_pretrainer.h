// Teaches DreamerV3's world model on source episodes, over the slots that all tasks share.
#ifndef MSRL_TRANSFER_DREAMER_PRETRAINER_H_
#define MSRL_TRANSFER_DREAMER_PRETRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "msrl/agents/dreamer/pretrained_world.h"
#include "msrl/transfer/pretrainer.h"
#include "msrl/transfer/source_sequences.h"
#include "msrl/transfer/world_model_control.h"

namespace msrl {

// The losses of the world model are the agent's (docs/agents/dreamer.md) on rewards in the unit of
// their task. A critic on the features learns the labels and teaches the features with them:
//   L = L_world + value_weight CE(two-hot G_t)
// No actor and no imagination.
struct DreamerPretrainConfig : WorldShape, WorldWeights {
  WorldModelControl control = WorldModelControl::kNone;
  ValueTarget target = ValueTarget::kFitted;  // of all transfer baselines
  int updates = 30'000;
  int sequences = 16;
  int sequence_length = 32;
  // slots are small numbers: at 1 the model spends its nats on other things (docs/transfer.md)
  double reconstruction_weight = 100.0;
  double value_weight = 0.3;
  double learning_rate = 5e-4;
  int warm_up = 200;

  template <typename V>
  void Fields(V&& visit) {
    visit("control", control, "what is broken on purpose");
    visit("target", target, "values that are the labels G");
    WorldShape::Fields(visit);
    visit("updates", updates, "gradient steps", NotNegative());
    visit("sequences", sequences, "sequences per gradient step", Between(1, 65'536));
    visit("sequence_length", sequence_length, "states of each", Between(2, 4096));
    WorldWeights::Fields(visit);
    visit("reconstruction_weight", reconstruction_weight, "weight of the error of slots",
          Positive());
    visit("value_weight", value_weight, "weight of the critic's loss on the labels", NotNegative());
    visit("learning_rate", learning_rate, "LaProp step size", Positive());
    visit("warm_up", warm_up, "updates until the step size is reached", Positive());
  }
};

// States as a world model is shown them, columns time by time.
struct WorldRecords {
  WorldRecords(int sequences, int length);

  Eigen::Index sequences() const { return count; }
  Eigen::Index length() const { return keep.size() / count; }

  Eigen::Index count;
  Eigen::MatrixXf x;            // kStateChannels
  Eigen::MatrixXf u;            // kActionChannels, of the action that led here; of none, the bits
  Eigen::RowVectorXf keep;      // 0 where it knows nothing of what was before
  Eigen::RowVectorXf reward;    // received on arriving here
  Eigen::RowVectorXf terminal;  // 1 where an episode terminated
  Eigen::RowVectorXf label;     // G_t
};

// Writes state t of an episode, with the reward and the label of `told`: its own, or another's.
// `begins`: as if nothing had been before.
void FillRecord(const SourceSequence& sequence, const SourceSequence& told, Index t, bool begins,
                Eigen::Index column, WorldRecords& records);

// Figures, on states of held-out episodes drawn task by task, after at most 16 states of context:
//   r2           share of the variance of G_t that the critic tells; train_r2: on training
//                episodes
//   reward_r2    the same of r_t, told before the state after it is seen
//   open_loop_x  squared error of slots five steps ahead, over that of "nothing changes"
//   kl           nats that a state tells beyond what was expected: near zero, z says nothing
class DreamerPretrainer : public Pretrainer {
 public:
  static DreamerPretrainConfig Configure(std::span<const std::string> settings);
  static std::vector<PretrainColumn> Columns();
  static std::optional<PaperFigure> Paper(std::string_view /*source*/,
                                          std::string_view /*column*/) {
    return std::nullopt;
  }
  static std::vector<ValueTarget> Targets(const DreamerPretrainConfig& config) {
    return {config.target};
  }
  static ArtefactHeader Announce(const DreamerPretrainConfig& config);

  DreamerPretrainer(const DreamerPretrainConfig& config, const EpisodeFile& train,
                    const EpisodeFile& held_out);

  std::unique_ptr<Pretraining> Start(const PretrainJob& job) const override;
  std::pair<std::int64_t, std::int64_t> examples() const override {
    return {train_.states(), held_out_.states()};
  }

 private:
  DreamerPretrainConfig config_;
  SourceSequences train_, held_out_;
};

}  // namespace msrl

#endif  // MSRL_TRANSFER_DREAMER_PRETRAINER_H_
