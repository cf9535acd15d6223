// Random numbers in bulk.
#ifndef MSRL_NN_RANDOM_H_
#define MSRL_NN_RANDOM_H_

#include <span>

#include "msrl/core/rng.h"

namespace msrl {

// Standard normal numbers, several times faster than Rng::Normal() (and not the same numbers).
// Draws 16 words for every 16 values begun; |value| < 6.7.
void FillNormal(Rng& rng, std::span<float> values);
// In [0, 1), with 24 bits: one word for every value.
void FillUniform(Rng& rng, std::span<float> values);

// A standard normal number, redrawn beyond two.
double TruncatedNormal(Rng& rng);

}  // namespace msrl

#endif  // MSRL_NN_RANDOM_H_
