#include "msrl/core/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "msrl/core/check.h"

namespace msrl {
namespace {

void RequireProbabilities(std::span<const double> probabilities,
                          std::span<const std::uint8_t> outcomes) {
  MSRL_CHECK(!probabilities.empty());
  MSRL_CHECK_EQ(probabilities.size(), outcomes.size());
  for (const double p : probabilities) MSRL_CHECK(p >= 0.0 && p <= 1.0, "probability ", p);
  for (const std::uint8_t outcome : outcomes) MSRL_CHECK(outcome <= 1);
}

}  // namespace

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
  // the mean of equal numbers may be off by its rounding
  const auto constant = [n](double squares, double mean) {
    return squares <= 1e-24 * n * mean * mean;
  };
  return constant(aa, mean_a) || constant(bb, mean_b) ? 0.0 : ab / std::sqrt(aa * bb);
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

double Auroc(std::span<const double> positives, std::span<const double> negatives) {
  MSRL_CHECK(!positives.empty() && !negatives.empty());
  std::vector<double> sorted(negatives.begin(), negatives.end());
  std::sort(sorted.begin(), sorted.end());
  double wins = 0.0;
  for (const double score : positives) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), score);
    wins += static_cast<double>(low - sorted.begin()) + 0.5 * static_cast<double>(high - low);
  }
  return wins / (static_cast<double>(positives.size()) * static_cast<double>(sorted.size()));
}

double ExpectedCalibrationError(std::span<const double> probabilities,
                                std::span<const std::uint8_t> outcomes, int bins) {
  RequireProbabilities(probabilities, outcomes);
  MSRL_CHECK_GE(bins, 1);
  // sum over a bin of (probability - outcome) is its share times its gap times the total
  std::vector<double> gaps(static_cast<std::size_t>(bins), 0.0);
  for (std::size_t n = 0; n < probabilities.size(); ++n) {
    const int bin = std::min(bins - 1, static_cast<int>(probabilities[n] * bins));
    gaps[static_cast<std::size_t>(bin)] += probabilities[n] - outcomes[n];
  }
  double sum = 0.0;
  for (const double gap : gaps) sum += std::abs(gap);
  return sum / static_cast<double>(probabilities.size());
}

double BrierScore(std::span<const double> probabilities, std::span<const std::uint8_t> outcomes) {
  RequireProbabilities(probabilities, outcomes);
  double sum = 0.0;
  for (std::size_t n = 0; n < probabilities.size(); ++n) {
    const double gap = probabilities[n] - outcomes[n];
    sum += gap * gap;
  }
  return sum / static_cast<double>(probabilities.size());
}

}  // namespace msrl
