#include "msrl/core/statistics.h"

#include <algorithm>
#include <cmath>
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
