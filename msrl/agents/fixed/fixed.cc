#include "msrl/agents/fixed/fixed.h"

#include <algorithm>

namespace msrl {

void RandomAgent::Act(const Situation&, ActMode, Rng& rng, ActionBuffer& out) {
  if (action_.kind == ActionKind::kDiscrete) {
    out.set_index(static_cast<int>(rng.Index(action_.size)));
  } else {
    for (double& value : out.values()) value = rng.Uniform(-1.0, 1.0);
  }
}

void StillAgent::Act(const Situation&, ActMode, Rng&, ActionBuffer& out) {
  out.set_index(0);
  std::ranges::fill(out.values(), 0.0);
}

}  // namespace msrl
