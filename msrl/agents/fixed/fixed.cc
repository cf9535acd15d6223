#include "msrl/agents/fixed/fixed.h"

#include <algorithm>

#include "msrl/agents/feed_forward.h"
#include "msrl/core/check.h"

namespace msrl {

FeedForwardPolicy FixedAgent::ExportPolicy() const {
  throw UserError("it learns nothing: there is no network");
}

void RandomAgent::ActInBatch(std::span<const Turn> turns, ActMode) {
  for (const Turn& turn : turns) DrawUniformAction(action_, turn.rng, turn.out);
}

void StillAgent::ActInBatch(std::span<const Turn> turns, ActMode) {
  for (const Turn& turn : turns) {
    turn.out.set_index(0);
    std::ranges::fill(turn.out.values(), 0.0);
  }
}

}  // namespace msrl
