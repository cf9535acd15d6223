#include "msrl/agents/common/percentiles.h"

#include <algorithm>

#include "msrl/core/check.h"

namespace msrl {

float Quantile(std::span<float> values, double share) {
  MSRL_CHECK(!values.empty() && share >= 0.0 && share <= 1.0, values.size(), " values, share ",
             share);
  const double at = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(values.begin(), middle, values.end());
  const float low = *middle;
  if (below + 1 == values.size()) return low;
  const float high = *std::min_element(middle + 1, values.end());
  return low + static_cast<float>(at - static_cast<double>(below)) * (high - low);
}

}  // namespace msrl
