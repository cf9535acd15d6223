#include "msrl/nn/two_hot.h"

#include <algorithm>
#include <cmath>

#include "msrl/core/check.h"

namespace msrl {

float Symlog(float x) { return std::copysign(std::log1p(std::abs(x)), x); }
float Symexp(float x) { return std::copysign(std::expm1(std::abs(x)), x); }

TwoHotBins TwoHotBins::Even(int count, double limit) { return {Space::kEven, count, limit}; }
TwoHotBins TwoHotBins::Symlog(int count, double limit) { return {Space::kSymlog, count, limit}; }
TwoHotBins TwoHotBins::Symexp(int count, double limit) { return {Space::kSymexp, count, limit}; }

TwoHotBins::TwoHotBins(Space space, int count, double limit)
    : space_(space), limit_(static_cast<float>(limit)) {
  MSRL_CHECK(count >= 2 && limit > 0.0, count, " bins up to ", limit);
  points_.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    // the upper half mirrors the lower one to the bit
    const double even = limit * (2 * i - (count - 1)) / (count - 1);
    points_[static_cast<std::size_t>(i)] =
        space == Space::kSymexp
            ? static_cast<float>(std::copysign(std::expm1(std::abs(even)), even))
            : static_cast<float>(even);
  }
}

TwoHotBins::Place TwoHotBins::Find(float x) const {
  if (std::isnan(x)) return {0, x};
  const int last = count() - 2;
  if (space_ == Space::kSymexp) {
    const float at = std::clamp(x, points_.front(), points_.back());
    const auto next = std::upper_bound(points_.begin(), points_.end(), at);
    const int below = std::min(static_cast<int>(next - points_.begin()) - 1, last);
    const float low = points_[static_cast<std::size_t>(below)];
    return {below, (at - low) / (points_[static_cast<std::size_t>(below) + 1] - low)};
  }
  const float even = space_ == Space::kSymlog ? msrl::Symlog(x) : x;
  const float at = (std::clamp(even, -limit_, limit_) + limit_) / (2.0F * limit_) *
                   static_cast<float>(count() - 1);
  const int below = std::min(static_cast<int>(at), last);
  return {below, at - static_cast<float>(below)};
}

float TwoHotBins::FromMean(float mean) const {
  return space_ == Space::kSymlog ? msrl::Symexp(mean) : mean;
}

float TwoHotBins::FromMeanSlope(float mean) const {
  return space_ == Space::kSymlog ? std::exp(std::abs(mean)) : 1.0F;
}

}  // namespace msrl
