#include "msrl/agents/fixed/fixed.h"

#include <algorithm>

namespace msrl {

void RandomAgent::Act(const Situation&, ActMode, Rng& rng, ActionBuffer& out) {
  DrawUniformAction(action_, rng, out);
}

void StillAgent::Act(const Situation&, ActMode, Rng&, ActionBuffer& out) {
  out.set_index(0);
  std::ranges::fill(out.values(), 0.0);
}

}  // namespace msrl
