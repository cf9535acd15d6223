// Statistics over seeds: the replication unit of every table (docs/report.md).
//
// A score is one number per training run. Episodes of an evaluation and evaluations of a run are
// never counted as repetitions, so the functions here take SeedScores: one value per seed.
#ifndef MSRL_REPORT_STATISTICS_H_
#define MSRL_REPORT_STATISTICS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "msrl/core/statistics.h"

namespace msrl::report {

// Scores of one method in one task. In order of seeds, whatever order they came in.
class SeedScores {
 public:
  // InvariantError if the seed has a score already or the value is not finite.
  void Add(std::uint64_t seed, double value);

  const std::vector<std::uint64_t>& seeds() const { return seeds_; }
  const std::vector<double>& values() const { return values_; }
  int n() const { return static_cast<int>(values_.size()); }
  bool empty() const { return values_.empty(); }
  std::optional<double> Of(std::uint64_t seed) const;
  // Those of the given seeds that there are.
  SeedScores Only(std::span<const std::uint64_t> seeds) const;

 private:
  std::vector<std::uint64_t> seeds_;
  std::vector<double> values_;
};

// The seeds that all have. Empty for no scores.
std::vector<std::uint64_t> CommonSeeds(std::span<const SeedScores> tasks);

struct CurvePoint {
  std::int64_t step = 0;
  double value = 0.0;
};

// Area under a learning curve divided by its length: the trapezoid mean from the first point to
// `window`, a number of steps. Where the window ends between two points the curve is a straight
// line there. Empty if the curve ends before the window or begins after it. Steps must increase.
std::optional<double> MeanOverWindow(std::span<const CurvePoint> curve, double window);

// The first point with at least this value; empty: never.
std::optional<std::int64_t> StepsToThreshold(std::span<const CurvePoint> curve, double threshold);

// Median of steps where "never" is later than every step. Empty median: at least half never did.
struct ThresholdSummary {
  std::optional<double> median = {};
  int reached = 0;
  int n = 0;
};
ThresholdSummary SummariseThreshold(std::span<const std::optional<std::int64_t>> steps);

// Mean without the lowest and the highest quarter: floor(n / 4) values are cut from each side, as
// scipy.stats.trim_mean(values, 0.25) and rliable do. At least one value.
double InterquartileMean(std::span<const double> values);

// The p-quantile between the two nearest values, linearly (numpy's default). At least one value;
// they are put in another order.
double Quantile(std::vector<double>& values, double p);

struct Interval {
  double low = 0.0;
  double high = 0.0;
};

struct BootstrapOptions {
  int resamples = 2000;
  double level = 0.95;
  std::uint64_t seed = 0;
  // Percentiles further out, so that the interval of a mean of few values is about as wide as
  // Student's (Hesterberg 2015, "expanded percentile"). The plain one covers 84 % instead of 95 %
  // at five seeds.
  bool expanded = false;
};

// Percentile interval of a statistic of all tasks. Seeds are drawn with replacement within each
// task (stratified), never across tasks. Equal arguments give equal bits. Empty if some task has
// fewer than two seeds.
using TaskStatistic = std::function<double(std::span<const std::vector<double>> tasks)>;
std::optional<Interval> StratifiedBootstrap(std::span<const SeedScores> tasks,
                                            const TaskStatistic& statistic,
                                            const BootstrapOptions& options = {});

// Ready statistics: mean of the tasks' means, and interquartile mean of all values together
// (rliable's aggregates).
double MeanOfMeans(std::span<const std::vector<double>> tasks);
double PooledInterquartileMean(std::span<const std::vector<double>> tasks);

// Bands of curves: intervals of the mean of n values, many times with the same resamples.
class MeanBands {
 public:
  MeanBands(int n, const BootstrapOptions& options);
  // Empty for n < 2. `values` are n.
  std::optional<Interval> Of(std::span<const double> values);

 private:
  int n_;
  double tail_;
  std::vector<int> index_;     // resamples x n
  std::vector<double> means_;  // workspace
};

// P(a run of a scores higher than one of b), ties counted half, in the mean over tasks
// (Mann-Whitney's U / (n m)). Tasks belong together by place; none is empty.
double ProbabilityOfImprovement(std::span<const SeedScores> a, std::span<const SeedScores> b);
std::optional<Interval> ProbabilityOfImprovementInterval(std::span<const SeedScores> a,
                                                         std::span<const SeedScores> b,
                                                         const BootstrapOptions& options = {});

// a - b for the seeds that both have.
SeedScores PairedDifferences(const SeedScores& a, const SeedScores& b);

struct PairedGain {
  double mean = 0.0;                      // mean over tasks of the mean difference
  std::optional<Interval> interval = {};  // expanded bootstrap over seeds within tasks
  int n = 0;                              // pairs: seeds that both have in every task
  int wins = 0;                           // of them with a mean difference above 0
};
// Empty if some task has no common seed.
std::optional<PairedGain> PairedGainOf(std::span<const SeedScores> a, std::span<const SeedScores> b,
                                       BootstrapOptions options = {});

// (value - low) / (high - low); empty unless low < high.
std::optional<double> Rescaled(double value, double low, double high);

// t with P(|T| <= t) = level for Student's T with this many degrees of freedom (at least 1).
double StudentQuantile(double level, int degrees);

}  // namespace msrl::report

#endif  // MSRL_REPORT_STATISTICS_H_
