#include "msrl/agents/metrics.h"

#include <algorithm>
#include <utility>

namespace msrl {

MetricMeans::MetricMeans(std::vector<std::string> names)
    : names_(std::move(names)), sums_(names_.size(), 0.0), counts_(names_.size(), 0) {}

void MetricMeans::Add(std::size_t which, double value) {
  sums_[which] += value;
  ++counts_[which];
}

void MetricMeans::Drain(MetricSink& sink) {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (counts_[i] > 0) sink.Add(names_[i], sums_[i] / static_cast<double>(counts_[i]));
  }
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(counts_.begin(), counts_.end(), 0);
}

void MetricMeans::Visit(const Archive& state) {
  state.Array("sums", sums_);
  state.Array("counts", counts_);
}

}  // namespace msrl
