// Agreement of predictions with what they predict: values, classes and probabilities.
#ifndef MSRL_CORE_STATISTICS_H_
#define MSRL_CORE_STATISTICS_H_

#include <cstdint>
#include <span>
#include <vector>

namespace msrl {

// 0 if either side is constant or there are fewer than two values.
double PearsonCorrelation(std::span<const double> a, std::span<const double> b);
// Pearson of the ranks; equal values share their mean rank.
double SpearmanCorrelation(std::span<const double> a, std::span<const double> b);
std::vector<double> Ranks(std::span<const double> values);

struct MeanStd {
  double mean = 0.0;
  double std = 0.0;  // of the sample, n - 1; 0 for one value
};
MeanStd MeanAndStd(std::span<const double> values);

// Area under the ROC curve: the probability that a positive scores higher than a negative, ties
// counted half. InvariantError if one of the sets is empty. Allocates.
double Auroc(std::span<const double> positives, std::span<const double> negatives);

// Predicted probabilities against what happened (0 or 1). InvariantError unless there are equally
// many of both, at least one, and every probability is in [0, 1].
//
// Expected calibration error: |mean probability - share of ones| within `bins` bins of equal width,
// averaged with the bins' shares of the predictions.
double ExpectedCalibrationError(std::span<const double> probabilities,
                                std::span<const std::uint8_t> outcomes, int bins = 10);
// Mean of (probability - outcome)^2.
double BrierScore(std::span<const double> probabilities, std::span<const std::uint8_t> outcomes);

}  // namespace msrl

#endif  // MSRL_CORE_STATISTICS_H_
