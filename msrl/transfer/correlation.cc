#include "msrl/transfer/correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "msrl/core/check.h"

namespace msrl {

double PearsonCorrelation(std::span<const double> a, std::span<const double> b) {
  MSRL_CHECK_EQ(a.size(), b.size());
  if (a.size() < 2) return 0.0;
  const auto n = static_cast<double>(a.size());
  const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
  const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double aa = 0.0;
  double bb = 0.0;
  double ab = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
    ab += (a[i] - mean_a) * (b[i] - mean_b);
  }
  return aa > 0.0 && bb > 0.0 ? ab / std::sqrt(aa * bb) : 0.0;
}

std::vector<double> Ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [values](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    const double shared = 0.5 * static_cast<double>(i + end - 1);
    for (; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

double SpearmanCorrelation(std::span<const double> a, std::span<const double> b) {
  return PearsonCorrelation(Ranks(a), Ranks(b));
}

MeanStd MeanAndStd(std::span<const double> values) {
  if (values.empty()) return {};
  const auto n = static_cast<double>(values.size());
  MeanStd result;
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  if (values.size() == 1) return result;
  double squares = 0.0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.std = std::sqrt(squares / (n - 1.0));
  return result;
}

}  // namespace msrl
