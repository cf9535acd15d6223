// Agreement of predictions with targets.
#ifndef MSRL_TRANSFER_CORRELATION_H_
#define MSRL_TRANSFER_CORRELATION_H_

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

}  // namespace msrl

#endif  // MSRL_TRANSFER_CORRELATION_H_
