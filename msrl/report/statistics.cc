#include "msrl/report/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/core/statistics.h"

namespace msrl::report {
namespace {

double Mean(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double NormalTail(double z) { return 0.5 * std::erfc(z / std::numbers::sqrt2); }

// Share of resamples beyond each end of the interval. `n` values in `tasks` tasks.
double TailShare(const BootstrapOptions& options, int n, int tasks) {
  MSRL_CHECK(options.resamples >= 1 && options.level > 0.0 && options.level < 1.0);
  if (!options.expanded) return 0.5 * (1.0 - options.level);
  const int degrees = n - tasks;
  // resampling divides by n where the sample variance divides by n - 1
  const double widening = std::sqrt(static_cast<double>(n) / degrees);
  return NormalTail(widening * StudentQuantile(options.level, degrees));
}

Interval Percentiles(std::vector<double>& statistics, double tail) {
  const double low = Quantile(statistics, tail);
  return {low, Quantile(statistics, 1.0 - tail)};
}

bool EveryTaskRepeats(std::span<const SeedScores> tasks) {
  return !tasks.empty() &&
         std::ranges::all_of(tasks, [](const SeedScores& task) { return task.n() >= 2; });
}

int CountValues(std::span<const SeedScores> tasks) {
  int n = 0;
  for (const SeedScores& task : tasks) n += task.n();
  return n;
}

void Draw(std::span<const SeedScores> tasks, Rng& rng, std::vector<std::vector<double>>& sample) {
  sample.resize(tasks.size());
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    const std::vector<double>& values = tasks[k].values();
    sample[k].resize(values.size());
    for (double& value : sample[k]) {
      value = values[static_cast<std::size_t>(rng.Index(std::ssize(values)))];
    }
  }
}

// Drawn places instead of values.
void DrawPlaces(int n, Rng& rng, std::vector<int>& places) {
  places.resize(static_cast<std::size_t>(n));
  for (int& place : places) place = static_cast<int>(rng.Index(n));
}

// 1 where a's value is higher, 1/2 where they are equal: a row per value of a.
std::vector<double> Duels(const SeedScores& a, const SeedScores& b) {
  std::vector<double> wins;
  for (const double left : a.values()) {
    for (const double right : b.values()) {
      wins.push_back(left > right ? 1.0 : left == right ? 0.5 : 0.0);
    }
  }
  return wins;
}

}  // namespace

void SeedScores::Add(std::uint64_t seed, double value) {
  MSRL_CHECK(std::isfinite(value), "score ", value, " of seed ", seed);
  const auto place = std::lower_bound(seeds_.begin(), seeds_.end(), seed);
  MSRL_CHECK(place == seeds_.end() || *place != seed, "seed ", seed, " has a score already");
  values_.insert(values_.begin() + (place - seeds_.begin()), value);
  seeds_.insert(place, seed);
}

std::optional<double> SeedScores::Of(std::uint64_t seed) const {
  const auto place = std::lower_bound(seeds_.begin(), seeds_.end(), seed);
  if (place == seeds_.end() || *place != seed) return std::nullopt;
  return values_[static_cast<std::size_t>(place - seeds_.begin())];
}

SeedScores SeedScores::Only(std::span<const std::uint64_t> seeds) const {
  SeedScores chosen;
  for (const std::uint64_t seed : seeds) {
    if (const auto value = Of(seed)) chosen.Add(seed, *value);
  }
  return chosen;
}

std::vector<std::uint64_t> CommonSeeds(std::span<const SeedScores> tasks) {
  std::vector<std::uint64_t> common;
  if (tasks.empty()) return common;
  for (const std::uint64_t seed : tasks[0].seeds()) {
    const auto has_it = [seed](const SeedScores& task) { return task.Of(seed).has_value(); };
    if (std::ranges::all_of(tasks, has_it)) common.push_back(seed);
  }
  return common;
}

std::optional<double> MeanOverWindow(std::span<const CurvePoint> curve, double window) {
  if (curve.empty() || static_cast<double>(curve.back().step) < window ||
      static_cast<double>(curve.front().step) > window) {
    return std::nullopt;
  }
  const auto first = static_cast<double>(curve.front().step);
  if (first == window) return curve.front().value;
  double area = 0.0;
  for (std::size_t i = 1; i < curve.size(); ++i) {
    const auto from = static_cast<double>(curve[i - 1].step);
    const auto to = static_cast<double>(curve[i].step);
    MSRL_CHECK_LT(from, to);
    const double end = std::min(to, window);
    const double share = (end - from) / (to - from);
    const double last = curve[i - 1].value + share * (curve[i].value - curve[i - 1].value);
    area += 0.5 * (curve[i - 1].value + last) * (end - from);
    if (to >= window) break;
  }
  return area / (window - first);
}

std::optional<std::int64_t> StepsToThreshold(std::span<const CurvePoint> curve, double threshold) {
  for (const CurvePoint& point : curve) {
    if (point.value >= threshold) return point.step;
  }
  return std::nullopt;
}

ThresholdSummary SummariseThreshold(std::span<const std::optional<std::int64_t>> steps) {
  ThresholdSummary summary{.n = static_cast<int>(steps.size())};
  std::vector<double> sorted;
  for (const auto& step : steps) {
    summary.reached += step ? 1 : 0;
    sorted.push_back(step ? static_cast<double>(*step) : std::numeric_limits<double>::infinity());
  }
  if (sorted.empty()) return summary;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t half = sorted.size() / 2;
  const double upper = sorted[half];
  const double lower = sorted.size() % 2 == 1 ? upper : sorted[half - 1];
  if (std::isfinite(upper)) summary.median = 0.5 * (lower + upper);
  return summary;
}

double InterquartileMean(std::span<const double> values) {
  MSRL_CHECK(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t cut = sorted.size() / 4;
  return Mean(std::span(sorted).subspan(cut, sorted.size() - 2 * cut));
}

double Quantile(std::vector<double>& values, double p) {
  MSRL_CHECK(!values.empty() && p >= 0.0 && p <= 1.0);
  const double place = p * static_cast<double>(values.size() - 1);
  const auto below = values.begin() + static_cast<std::ptrdiff_t>(place);
  std::nth_element(values.begin(), below, values.end());
  const double share = place - std::floor(place);
  if (share == 0.0 || below + 1 == values.end()) return *below;
  return *below + share * (*std::min_element(below + 1, values.end()) - *below);
}

std::optional<Interval> StratifiedBootstrap(std::span<const SeedScores> tasks,
                                            const TaskStatistic& statistic,
                                            const BootstrapOptions& options) {
  if (!EveryTaskRepeats(tasks)) return std::nullopt;
  const double tail = TailShare(options, CountValues(tasks), static_cast<int>(tasks.size()));
  Rng rng(options.seed, "bootstrap");
  std::vector<std::vector<double>> sample;
  std::vector<double> statistics(static_cast<std::size_t>(options.resamples));
  for (double& value : statistics) {
    Draw(tasks, rng, sample);
    value = statistic(sample);
  }
  return Percentiles(statistics, tail);
}

double MeanOfMeans(std::span<const std::vector<double>> tasks) {
  double sum = 0.0;
  for (const std::vector<double>& task : tasks) sum += Mean(task);
  return sum / static_cast<double>(tasks.size());
}

double PooledInterquartileMean(std::span<const std::vector<double>> tasks) {
  std::vector<double> all;
  for (const std::vector<double>& task : tasks) all.insert(all.end(), task.begin(), task.end());
  return InterquartileMean(all);
}

MeanBands::MeanBands(int n, const BootstrapOptions& options)
    : n_(n), tail_(n >= 2 ? TailShare(options, n, 1) : 0.0) {
  if (n < 2) return;
  Rng rng(options.seed, "bootstrap");
  means_.resize(static_cast<std::size_t>(options.resamples));
  index_.resize(means_.size() * static_cast<std::size_t>(n));
  for (int& index : index_) index = static_cast<int>(rng.Index(n));
}

std::optional<Interval> MeanBands::Of(std::span<const double> values) {
  MSRL_CHECK_EQ(std::ssize(values), n_);
  if (n_ < 2) return std::nullopt;
  const int* index = index_.data();
  for (double& mean : means_) {
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) sum += values[static_cast<std::size_t>(*index++)];
    mean = sum / n_;
  }
  return Percentiles(means_, tail_);
}

double ProbabilityOfImprovement(std::span<const SeedScores> a, std::span<const SeedScores> b) {
  MSRL_CHECK(!a.empty());
  MSRL_CHECK_EQ(a.size(), b.size());
  double sum = 0.0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += Auroc(a[k].values(), b[k].values());
  return sum / static_cast<double>(a.size());
}

std::optional<Interval> ProbabilityOfImprovementInterval(std::span<const SeedScores> a,
                                                         std::span<const SeedScores> b,
                                                         const BootstrapOptions& options) {
  MSRL_CHECK_EQ(a.size(), b.size());
  if (!EveryTaskRepeats(a) || !EveryTaskRepeats(b)) return std::nullopt;
  MSRL_CHECK(!options.expanded, "a probability is no mean");
  const double tail = TailShare(options, 0, 0);
  Rng rng(options.seed, "bootstrap");
  std::vector<std::vector<double>> duels;
  for (std::size_t k = 0; k < a.size(); ++k) duels.push_back(Duels(a[k], b[k]));
  std::vector<int> from_a, from_b;
  std::vector<double> statistics(static_cast<std::size_t>(options.resamples));
  for (double& value : statistics) {
    value = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) {
      DrawPlaces(a[k].n(), rng, from_a);
      DrawPlaces(b[k].n(), rng, from_b);
      double wins = 0.0;
      for (const int i : from_a) {
        const double* const row = duels[k].data() + i * b[k].n();
        for (const int j : from_b) wins += row[j];
      }
      value += wins / (a[k].n() * b[k].n()) / static_cast<double>(a.size());
    }
  }
  return Percentiles(statistics, tail);
}

SeedScores PairedDifferences(const SeedScores& a, const SeedScores& b) {
  SeedScores differences;
  for (std::size_t i = 0; i < a.seeds().size(); ++i) {
    const std::uint64_t seed = a.seeds()[i];
    if (const auto other = b.Of(seed)) differences.Add(seed, a.values()[i] - *other);
  }
  return differences;
}

std::optional<PairedGain> PairedGainOf(std::span<const SeedScores> a, std::span<const SeedScores> b,
                                       BootstrapOptions options) {
  MSRL_CHECK_EQ(a.size(), b.size());
  PairedGain gain;
  std::vector<SeedScores> differences;
  for (std::size_t k = 0; k < a.size(); ++k) {
    differences.push_back(PairedDifferences(a[k], b[k]));
    if (differences.back().empty()) return std::nullopt;
    gain.mean += Mean(differences.back().values()) / static_cast<double>(a.size());
  }
  if (differences.empty()) return std::nullopt;
  options.expanded = true;
  gain.interval = StratifiedBootstrap(differences, MeanOfMeans, options);
  for (const std::uint64_t seed : CommonSeeds(differences)) {
    double sum = 0.0;
    for (const SeedScores& task : differences) sum += *task.Of(seed);
    ++gain.n;
    gain.wins += sum > 0.0 ? 1 : 0;
  }
  return gain;
}

std::optional<double> Rescaled(double value, double low, double high) {
  if (!(low < high)) return std::nullopt;
  return (value - low) / (high - low);
}

double StudentQuantile(double level, int degrees) {
  MSRL_CHECK(level > 0.0 && level < 1.0 && degrees >= 1);
  // P(|T| <= t) in closed form for whole degrees of freedom, with tan(angle) = t / sqrt(degrees)
  const auto inside = [degrees](double angle) {
    const double c = std::cos(angle);
    const bool odd = degrees % 2 == 1;
    double term = odd ? c : 1.0;
    double sum = degrees == 1 ? 0.0 : term;
    for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
      term *= c * c * (k - 1) / k;
      sum += term;
    }
    if (!odd) return std::sin(angle) * sum;
    return 2.0 / std::numbers::pi * (angle + std::sin(angle) * sum);
  };
  double low = 0.0, high = std::numbers::pi / 2;
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = 0.5 * (low + high);
    if (middle == low || middle == high) break;
    (inside(middle) < level ? low : high) = middle;
  }
  return std::sqrt(degrees) * std::tan(low);
}

}  // namespace msrl::report
