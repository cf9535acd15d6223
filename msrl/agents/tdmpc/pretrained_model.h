// Latent models as artefacts: pretrained on source episodes, over the slots that all tasks share.
#ifndef MSRL_AGENTS_TDMPC_PRETRAINED_MODEL_H_
#define MSRL_AGENTS_TDMPC_PRETRAINED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "msrl/agents/tdmpc/latent_model.h"
#include "msrl/artefacts/artefact.h"

namespace msrl {

inline constexpr const char* kLatentModelKind = "tdmpc";
inline constexpr int kMaxTasks = 1000;  // that a model was pretrained on

// The sizes that a model over slots is free to choose.
struct LatentSizes {
  int encoder_width = 128;
  int latent_groups = 8;
  int model_width = 128;
  int q_count = 3;
  int bins = 101;
  bool termination = true;
  int task_size = 16;

  bool operator==(const LatentSizes&) const = default;
};

// Of a model over slots for `tasks` tasks, without a target's own inputs.
LatentModelSpec SlotModel(const LatentSizes& sizes, int tasks);
// How many numbers its tensors have.
std::int64_t ParameterCount(const LatentSizes& sizes, int tasks);

ArtefactHeader HeaderOf(const LatentSizes& sizes, ArtefactTexts made);
std::string EncodeModel(LatentModel& model, const ArtefactHeader& header);

// UserError that names the artefact's source if it is not a whole model of this kind.
LatentSizes SizesOf(const ArtefactHeader& header, const std::string& source);
std::unique_ptr<LatentModel> ReadModel(const Artefact& artefact);

}  // namespace msrl

#endif  // MSRL_AGENTS_TDMPC_PRETRAINED_MODEL_H_
