// Where the middle of a batch of numbers lies, to scale what is learned from them.
#ifndef MSRL_AGENTS_COMMON_PERCENTILES_H_
#define MSRL_AGENTS_COMMON_PERCENTILES_H_

#include <span>

namespace msrl {

// The number below which this share of the values lies, linear between neighbours (as numpy's
// quantile). The values, at least one and all finite, are reordered. No allocation.
float Quantile(std::span<float> values, double share);

}  // namespace msrl

#endif  // MSRL_AGENTS_COMMON_PERCENTILES_H_
