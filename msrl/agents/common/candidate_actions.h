// Random actions that planners weigh.
#ifndef MSRL_AGENTS_COMMON_CANDIDATE_ACTIONS_H_
#define MSRL_AGENTS_COMMON_CANDIDATE_ACTIONS_H_

#include <algorithm>
#include <span>

#include "msrl/core/rng.h"

namespace msrl {

// Uniform, stretched by a factor and clipped to [-1, 1]: extreme actions are often the best.
template <typename T>
void DrawStretched(double stretch, Rng& rng, std::span<T> action) {
  for (T& a : action) {
    a = static_cast<T>(std::clamp(stretch * rng.Uniform(-1.0, 1.0), -1.0, 1.0));
  }
}

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_CANDIDATE_ACTIONS_H_
