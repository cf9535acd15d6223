// World models as artefacts: pretrained on source episodes, over the slots that all tasks share.
#ifndef MSRL_AGENTS_DREAMER_PRETRAINED_WORLD_H_
#define MSRL_AGENTS_DREAMER_PRETRAINED_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "msrl/agents/dreamer/world_model.h"
#include "msrl/artefacts/artefact.h"

namespace msrl {

inline constexpr const char* kWorldModelKind = "dreamer";

// Of a model over slots, without a target's own parts.
WorldModelSpec SlotWorldSpec(const WorldShape& shape);

// Such a model. Its file holds `world`: what a target takes over. Rewards are of another scale
// there, so that `heads` stay behind.
struct SlotWorld {
  SlotWorld(const WorldShape& shape, Rng& rng);

  Parameters world, heads;
  WorldModel model;
};
// How many numbers the file has.
std::int64_t ParameterCount(const WorldShape& shape);

ArtefactHeader WorldHeader(const WorldShape& shape, ArtefactTexts made);
std::string EncodeWorld(SlotWorld& world, const ArtefactHeader& header);

// UserError that names the artefact's source if it is not a whole model of this kind. Heads are as
// they start.
std::unique_ptr<SlotWorld> ReadWorld(const Artefact& artefact);

}  // namespace msrl

#endif  // MSRL_AGENTS_DREAMER_PRETRAINED_WORLD_H_
