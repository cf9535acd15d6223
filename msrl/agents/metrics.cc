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

void MetricMeans::Save(const StateWriter& state) const {
  const auto size = static_cast<std::int64_t>(names_.size());
  state.View("sums", std::span<const double>(sums_), {size});
  state.View("counts", std::span<const std::int64_t>(counts_), {size});
}

void MetricMeans::Load(const StateReader& state) {
  const auto size = static_cast<std::int64_t>(names_.size());
  state.Into("sums", std::span(sums_), {size});
  state.Into("counts", std::span(counts_), {size});
}

}  // namespace msrl
