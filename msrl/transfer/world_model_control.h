// What the pretrainers of world models have in common.
#ifndef MSRL_TRANSFER_WORLD_MODEL_CONTROL_H_
#define MSRL_TRANSFER_WORLD_MODEL_CONTROL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "msrl/artefacts/artefact.h"
#include "msrl/core/enum_names.h"
#include "msrl/transfer/source_sequences.h"

namespace msrl {

// What is broken on purpose: rewards and labels are another episode's, or nothing is learned.
enum class WorldModelControl { kNone, kShuffled, kRandom };
constexpr auto EnumNames(WorldModelControl) {
  return Names("none", "shuffled", "random");  // a word
}

// Steps that figures look ahead.
inline constexpr int kOpenLoopSteps = 5;

// Gradient steps that are taken.
int UpdatesOf(WorldModelControl control, int updates);

// Whose rewards and labels every episode is taught: its own, or another's.
std::vector<const SourceSequence*> TellersOf(const SourceSequences& set, WorldModelControl control,
                                             std::uint64_t seed);

// How much less than its variance an error is: 1 - sum e^2 / sum (y - mean)^2.
double ShareTold(const std::vector<double>& told, const std::vector<double>& truth);

// Squared errors of slots that are alive, and of "nothing changes": columns are x (above its bits).
struct SlotErrors {
  void Add(const Eigen::Ref<const Eigen::VectorXd>& told,
           const Eigen::Ref<const Eigen::VectorXf>& before,
           const Eigen::Ref<const Eigen::VectorXf>& after);
  // Below 1: better than that.
  double ratio() const;

  double errors = 0.0;
  double still = 0.0;
};

// The provenance that such a pretrainer adds.
template <typename Config>
ArtefactTexts WorldModelTexts(const Config& config, ArtefactTexts made) {
  made["target"] = EnumName(config.target);
  made["control"] = EnumName(config.control);
  made["updates"] = std::to_string(UpdatesOf(config.control, config.updates));
  return made;
}

}  // namespace msrl

#endif  // MSRL_TRANSFER_WORLD_MODEL_CONTROL_H_
