#include "msrl/report/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"

namespace msrl::report {
namespace {

SeedScores Scores(const std::vector<double>& values, std::uint64_t first_seed = 100) {
  SeedScores scores;
  for (const double value : values) scores.Add(first_seed++, value);
  return scores;
}

TEST(SeedScores, OneValuePerSeedInTheOrderOfSeeds) {
  SeedScores scores;
  scores.Add(7, 0.5);
  scores.Add(3, 0.25);
  EXPECT_EQ(scores.seeds(), (std::vector<std::uint64_t>{3, 7}));
  EXPECT_EQ(scores.values(), (std::vector<double>{0.25, 0.5}));
  EXPECT_THROW(scores.Add(7, 0.75), InvariantError);
  EXPECT_THROW(scores.Add(8, NAN), InvariantError);
  EXPECT_EQ(scores.Of(3), 0.25);
  EXPECT_EQ(scores.Of(4), std::nullopt);
}

TEST(SeedScores, CommonSeedsAreThoseOfAll) {
  const std::vector<SeedScores> tasks{Scores({1, 2, 3}, 1), Scores({1, 2, 3}, 2)};
  EXPECT_EQ(CommonSeeds(tasks), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(tasks[0].Only(CommonSeeds(tasks)).values(), (std::vector<double>{2, 3}));
  EXPECT_TRUE(CommonSeeds({}).empty());
}

TEST(MeanOverWindow, TrapezoidByHand) {
  const std::vector<CurvePoint> curve{{0, 0.0}, {100, 1.0}, {200, 1.0}, {300, 0.0}};
  // (0 + 1) / 2 * 100 + 1 * 100 + (1 + 0) / 2 * 100 = 200, over 300 steps
  EXPECT_DOUBLE_EQ(MeanOverWindow(curve, 300).value(), 2.0 / 3.0);
  // the first two pieces alone: 150 / 200
  EXPECT_DOUBLE_EQ(MeanOverWindow(curve, 200).value(), 0.75);
  // ends between evaluations, where the curve is 0.5: (0 + 0.5) / 2
  EXPECT_DOUBLE_EQ(MeanOverWindow(curve, 50).value(), 0.25);
  // 50 + 100 + (1 + 0.5) / 2 * 50 = 187.5 over 250
  EXPECT_DOUBLE_EQ(MeanOverWindow(curve, 250).value(), 0.75);
}

TEST(MeanOverWindow, ACurveThatEndsBeforeHasNone) {
  const std::vector<CurvePoint> curve{{0, 0.0}, {100, 1.0}};
  EXPECT_TRUE(MeanOverWindow(curve, 100));
  EXPECT_FALSE(MeanOverWindow(curve, 100.5));
  EXPECT_FALSE(MeanOverWindow({}, 0));
  EXPECT_DOUBLE_EQ(MeanOverWindow(curve, 0).value(), 0.0);
  const std::vector<CurvePoint> late{{50, 2.0}, {100, 4.0}};
  EXPECT_FALSE(MeanOverWindow(late, 40));
  EXPECT_DOUBLE_EQ(MeanOverWindow(late, 100).value(), 3.0);
}

TEST(MeanOverWindow, DoesNotDependOnHowOftenAStraightLineIsEvaluated) {
  std::vector<CurvePoint> fine, coarse;
  for (int step = 0; step <= 1000; step += 10) fine.push_back({step, 0.002 * step});
  for (int step = 0; step <= 1000; step += 250) coarse.push_back({step, 0.002 * step});
  EXPECT_NEAR(*MeanOverWindow(fine, 250), 0.25, 1e-12);
  EXPECT_NEAR(*MeanOverWindow(fine, 333), *MeanOverWindow(coarse, 333), 1e-12);
}

TEST(Threshold, FirstEvaluationThatReachesIt) {
  const std::vector<CurvePoint> curve{{0, 0.0}, {100, 0.9}, {200, 0.5}, {300, 1.0}};
  EXPECT_EQ(StepsToThreshold(curve, 0.9), 100);
  EXPECT_EQ(StepsToThreshold(curve, 0.95), 300);
  EXPECT_EQ(StepsToThreshold(curve, 1.01), std::nullopt);
}

TEST(Threshold, NeverIsLaterThanAll) {
  using Steps = std::vector<std::optional<std::int64_t>>;
  const auto none = std::nullopt;
  EXPECT_EQ(SummariseThreshold(Steps{300, none, 100}).median, 300.0);
  EXPECT_EQ(SummariseThreshold(Steps{300, 500, 100, none}).median, 400.0);
  const ThresholdSummary rarely = SummariseThreshold(Steps{300, none, none});
  EXPECT_EQ(rarely.median, std::nullopt);
  EXPECT_EQ(rarely.reached, 1);
  EXPECT_EQ(rarely.n, 3);
  // the middle of 100 and never is never
  EXPECT_EQ(SummariseThreshold(Steps{100, none}).median, std::nullopt);
}

// scipy.stats.trim_mean(x[:n], 0.25) of SciPy 1.10.1
TEST(InterquartileMean, AsScipyTrims) {
  const std::vector<double> x{0.31, 0.92, 0.15, 0.67, 0.88, 0.41, 0.05, 0.77, 0.59, 0.23, 0.99};
  const std::vector<std::pair<std::size_t, double>> expected{
      {1, 0.31}, {2, 0.615}, {3, 0.46},
      {4, 0.49}, {5, 0.62},  {7, 0.484},
      {8, 0.54}, {9, 0.55},  {11, 0.5514285714285714}};
  for (const auto& [n, value] : expected) {
    EXPECT_NEAR(InterquartileMean(std::span(x).first(n)), value, 1e-15) << n;
  }
}

// numpy.quantile of the same numbers
TEST(Quantile, AsNumpyInterpolates) {
  std::vector<double> x{0.99, 0.15, 0.77, 0.31, 0.41, 0.59, 0.67, 0.23, 0.88, 0.92, 0.05};
  EXPECT_NEAR(Quantile(x, 0.0), 0.05, 1e-15);
  EXPECT_NEAR(Quantile(x, 0.025), 0.075, 1e-15);
  EXPECT_NEAR(Quantile(x, 0.3), 0.31, 1e-15);
  EXPECT_NEAR(Quantile(x, 0.975), 0.9725, 1e-15);
  EXPECT_NEAR(Quantile(x, 1.0), 0.99, 1e-15);
}

TEST(StudentQuantile, ClosedForms) {
  for (const double level : {0.5, 0.9, 0.95, 0.999}) {
    EXPECT_NEAR(StudentQuantile(level, 1) / std::tan(level * M_PI / 2), 1.0, 1e-12);
    const double two = level * std::sqrt(2 / (1 - level * level));
    EXPECT_NEAR(StudentQuantile(level, 2) / two, 1.0, 1e-12);
  }
}

// scipy.stats.t.ppf(0.5 + level / 2, degrees), which is good to nine digits
TEST(StudentQuantile, AsScipy) {
  EXPECT_NEAR(StudentQuantile(0.95, 1), 12.706204736432095, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 2), 4.302652729911275, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 3), 3.182446305284263, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 4), 2.7764451051977987, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 9), 2.2621571627409915, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.95, 100), 1.9839715184496334, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.99, 5), 4.032142983557536, 1e-8);
  EXPECT_NEAR(StudentQuantile(0.5, 20), 0.6869544953430642, 1e-8);
}

TEST(Bootstrap, PercentilesOfAllResamples) {
  // the means of all 5^5 resamples are known: numpy.quantile of them at 2.5 % and 97.5 % is
  // 0.596 and 0.746, at 0.00095 and 0.99905 (expanded, see below) 0.564 and 0.782;
  // scipy.stats.bootstrap(..., method="percentile", n_resamples=200000) gives 0.596, 0.746 too
  const std::vector<SeedScores> task{Scores({0.62, 0.71, 0.55, 0.80, 0.66})};
  BootstrapOptions options{.resamples = 20000};
  const Interval plain = StratifiedBootstrap(task, MeanOfMeans, options).value();
  EXPECT_NEAR(plain.low, 0.596, 0.006);
  EXPECT_NEAR(plain.high, 0.746, 0.006);
  options.expanded = true;
  const Interval expanded = StratifiedBootstrap(task, MeanOfMeans, options).value();
  EXPECT_NEAR(expanded.low, 0.564, 0.006);
  EXPECT_NEAR(expanded.high, 0.782, 0.006);
}

// scipy.stats.bootstrap((w,), lambda z, axis: trim_mean(z, 0.25, axis=axis), n_resamples=200000,
// method="percentile"): 0.4375, 0.7775
TEST(Bootstrap, InterquartileMeanAsScipy) {
  const std::vector<SeedScores> task{Scores({0.62, 0.71, 0.55, 0.80, 0.66, 0.1, 0.93, 0.48})};
  const Interval interval =
      StratifiedBootstrap(task, PooledInterquartileMean, {.resamples = 20000}).value();
  EXPECT_NEAR(interval.low, 0.4375, 0.008);
  EXPECT_NEAR(interval.high, 0.7775, 0.008);
}

TEST(Bootstrap, SeedsAreDrawnWithinTasksOnly) {
  // tasks of very different level, each without spread: nothing varies
  const std::vector<SeedScores> tasks{Scores({1, 1, 1}), Scores({9, 9, 9})};
  const Interval interval = StratifiedBootstrap(tasks, MeanOfMeans).value();
  EXPECT_EQ(interval.low, 5.0);
  EXPECT_EQ(interval.high, 5.0);
}

TEST(Bootstrap, SameBitsAgainAndOthersWithAnotherSeed) {
  const std::vector<SeedScores> tasks{Scores({0.1, 0.4, 0.35, 0.8}), Scores({0.2, 0.6, 0.9})};
  const Interval a = StratifiedBootstrap(tasks, PooledInterquartileMean).value();
  const Interval b = StratifiedBootstrap(tasks, PooledInterquartileMean).value();
  EXPECT_EQ(a.low, b.low);
  EXPECT_EQ(a.high, b.high);
  const std::vector<SeedScores> mean_task{Scores({0.137, 0.4451, 0.3521, 0.8123, 0.2718, 0.5772})};
  const Interval c = StratifiedBootstrap(mean_task, MeanOfMeans, {.resamples = 500}).value();
  const Interval d =
      StratifiedBootstrap(mean_task, MeanOfMeans, {.resamples = 500, .seed = 1}).value();
  EXPECT_NE(c.low, d.low);
}

TEST(Bootstrap, OneSeedHasNoInterval) {
  const std::vector<SeedScores> tasks{Scores({0.1, 0.4}), Scores({0.2})};
  EXPECT_FALSE(StratifiedBootstrap(tasks, MeanOfMeans));
  EXPECT_FALSE(StratifiedBootstrap({}, MeanOfMeans));
}

TEST(Bootstrap, BandsAreTheIntervalsOfOneTask) {
  const std::vector<double> values{0.62, 0.71, 0.55, 0.80, 0.66};
  const std::vector<SeedScores> task{Scores(values)};
  const BootstrapOptions options{.expanded = true};
  MeanBands bands(5, options);
  const Interval expected = StratifiedBootstrap(task, MeanOfMeans, options).value();
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Interval band = bands.Of(values).value();
    EXPECT_DOUBLE_EQ(band.low, expected.low);
    EXPECT_DOUBLE_EQ(band.high, expected.high);
  }
  EXPECT_FALSE(MeanBands(1, options).Of(std::vector<double>{0.5}));
}

// How often an interval of the mean of n normal values has the true mean in it.
double Coverage(int n, bool expanded) {
  constexpr int kTrials = 2000;
  Rng rng(11, "coverage");
  MeanBands bands(n, {.resamples = 1000, .expanded = expanded});
  int covered = 0;
  std::vector<double> values(static_cast<std::size_t>(n));
  for (int trial = 0; trial < kTrials; ++trial) {
    for (double& value : values) value = 0.6 + 0.1 * rng.Normal();
    const Interval interval = bands.Of(values).value();
    covered += interval.low <= 0.6 && 0.6 <= interval.high ? 1 : 0;
  }
  return static_cast<double>(covered) / kTrials;
}

// The figures of docs/report.md: --gtest_output=xml has them.
TEST(Bootstrap, CoverageOfTheExpandedInterval) {
  const auto measured = [](int n, bool expanded) {
    const double coverage = Coverage(n, expanded);
    RecordProperty((expanded ? "expanded_" : "plain_") + std::to_string(n),
                   std::to_string(coverage));
    return coverage;
  };
  // 2,000 trials: standard error 0.5 %
  EXPECT_NEAR(measured(10, true), 0.945, 0.015);
  EXPECT_NEAR(measured(20, true), 0.945, 0.015);
  // five values: no resample lies outside of their range
  EXPECT_NEAR(measured(5, true), 0.92, 0.02);
  // and why the plain one is not used for means
  EXPECT_LT(measured(5, false), 0.87);
  EXPECT_LT(measured(10, false), 0.93);
}

// scipy.stats.mannwhitneyu(a, b).statistic / 20
TEST(ProbabilityOfImprovement, MannWhitneyWithTiesHalf) {
  const std::vector<SeedScores> a{Scores({0.5, 0.7, 0.7, 0.9, 1.1})};
  const std::vector<SeedScores> b{Scores({0.4, 0.7, 0.8, 0.2})};
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(a, b), 0.75);
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(b, a), 0.25);
  const Interval interval = ProbabilityOfImprovementInterval(a, b).value();
  EXPECT_LT(interval.low, 0.75);
  EXPECT_GT(interval.high, 0.75);
  EXPECT_LE(interval.high, 1.0);
}

TEST(ProbabilityOfImprovement, MeanOverTasks) {
  const std::vector<SeedScores> a{Scores({2, 3}), Scores({0, 1})};
  const std::vector<SeedScores> b{Scores({0, 1}), Scores({2, 1})};
  // 1 in the first task; in the second 0 of 4 pairs and one tie: 1/8
  EXPECT_DOUBLE_EQ(ProbabilityOfImprovement(a, b), 0.5625);
}

TEST(PairedGain, ByCommonSeeds) {
  const SeedScores a = Scores({0.5, 0.6, 0.9, 0.4}, 100);  // seeds 100 to 103
  const SeedScores b = Scores({0.1, 0.5, 0.9, 9.0}, 101);  // seeds 101 to 104
  // 0.6 - 0.1, 0.9 - 0.5, 0.4 - 0.9
  const PairedGain gain = PairedGainOf(std::span(&a, 1), std::span(&b, 1)).value();
  EXPECT_EQ(gain.n, 3);
  EXPECT_EQ(gain.wins, 2);
  EXPECT_NEAR(gain.mean, (0.5 + 0.4 - 0.5) / 3, 1e-15);
  EXPECT_LT(gain.interval->low, 0.0);
}

TEST(PairedGain, PairingTakesOutWhatSeedsShare) {
  // seeds differ a lot, the difference hardly
  const SeedScores a = Scores({0.11, 0.52, 0.93, 0.31, 0.72});
  const SeedScores b = Scores({0.10, 0.50, 0.90, 0.30, 0.70});
  const PairedGain gain = PairedGainOf(std::span(&a, 1), std::span(&b, 1)).value();
  EXPECT_GT(gain.interval->low, 0.0);
  EXPECT_LT(gain.interval->high, 0.05);
}

TEST(PairedGain, OverTasksPairsAreSeeds) {
  // differences by seed: +1, -3, -1 and +1, +1, nothing
  const SeedScores a[] = {Scores({1.0, 0.0, 0.0}, 1), Scores({1.0, 1.0}, 1)};
  const SeedScores b[] = {Scores({0.0, 3.0, 1.0}, 1), Scores({0.0, 0.0}, 1)};
  const PairedGain gain = PairedGainOf(a, b).value();
  EXPECT_DOUBLE_EQ(gain.mean, (-1.0 + 1.0) / 2);
  EXPECT_EQ(gain.n, 2);     // seeds 1 and 2, not five pairs
  EXPECT_EQ(gain.wins, 1);  // seed 1; seed 2 loses more in one task than it wins in the other
}

TEST(PairedGain, NoCommonSeedNoGain) {
  const SeedScores a = Scores({0.5}, 1), b = Scores({0.5}, 2);
  EXPECT_FALSE(PairedGainOf(std::span(&a, 1), std::span(&b, 1)));
  const SeedScores c = Scores({0.25}, 1);
  const auto one = PairedGainOf(std::span(&a, 1), std::span(&c, 1));
  EXPECT_DOUBLE_EQ(one->mean, 0.25);
  EXPECT_FALSE(one->interval);
}

TEST(Rescaled, NeedsAScale) {
  EXPECT_EQ(Rescaled(5, 0, 10), 0.5);
  EXPECT_EQ(Rescaled(-5, 0, 10), -0.5);
  EXPECT_EQ(Rescaled(5, 10, 10), std::nullopt);
  EXPECT_EQ(Rescaled(5, 10, 0), std::nullopt);
}

// ---- 1,000 random tables beside the definitions, written down as they stand in a book ----

// One to six tasks with 2 to 20 seeds each, of any scale, every second table with ties.
std::vector<SeedScores> RandomTable(Rng& rng) {
  const double scale = std::pow(10.0, rng.Uniform(-6.0, 6.0));
  const bool ties = rng.Index(2) == 0;
  std::vector<SeedScores> table(static_cast<std::size_t>(1 + rng.Index(6)));
  for (SeedScores& task : table) {
    const std::int64_t n = 2 + rng.Index(19);
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = ties ? static_cast<double>(rng.Index(5)) : rng.Normal();
      task.Add(static_cast<std::uint64_t>(100 + 2 * i + rng.Index(2)), scale * value);
    }
  }
  return table;
}

// The value that exactly `rank` others come before.
long double AtRank(std::span<const double> values, std::size_t rank) {
  for (const double value : values) {
    const auto less = [value](double other) { return other < value; };
    const auto same = [value](double other) { return other == value; };
    const auto before = static_cast<std::size_t>(std::ranges::count_if(values, less));
    const auto equal = static_cast<std::size_t>(std::ranges::count_if(values, same));
    if (before <= rank && rank < before + equal) return value;
  }
  return std::numeric_limits<long double>::quiet_NaN();
}

long double PlainInterquartileMean(std::span<const double> values) {
  const std::size_t cut = values.size() / 4;
  long double sum = 0.0L;
  for (std::size_t rank = cut; rank < values.size() - cut; ++rank) sum += AtRank(values, rank);
  return sum / static_cast<long double>(values.size() - 2 * cut);
}

long double PlainQuantile(std::span<const double> values, double p) {
  const long double place = static_cast<long double>(p) * (values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const long double share = place - below;
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return (1 - share) * AtRank(values, below) + share * AtRank(values, above);
}

long double PlainMean(std::span<const double> values) {
  long double sum = 0.0L;
  for (const double value : values) sum += value;
  return sum / values.size();
}

TEST(Statistics, AThousandRandomTablesAsByDefinition) {
  Rng rng(26, "tables");
  double worst = 0.0;
  const auto expect = [&worst](long double expected, double got, double scale) {
    const double error = std::abs(static_cast<double>(expected - got)) / std::max(scale, 1e-300);
    worst = std::max(worst, error);
    EXPECT_LE(error, 1e-12);
  };
  for (int i = 0; i < 1000 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const std::vector<SeedScores> a = RandomTable(rng);
    std::vector<SeedScores> b = RandomTable(rng);
    b.resize(a.size(), b.front());
    std::vector<std::vector<double>> values;
    std::vector<double> all;
    double largest = 0.0;
    long double mean = 0.0L, better = 0.0L, gain = 0.0L;
    std::map<std::uint64_t, std::pair<std::size_t, long double>> by_seed;  // tasks, sum
    bool paired = true;
    for (std::size_t k = 0; k < a.size(); ++k) {
      values.push_back(a[k].values());
      all.insert(all.end(), a[k].values().begin(), a[k].values().end());
      mean += PlainMean(a[k].values()) / a.size();
      long double sum = 0.0L, difference = 0.0L;
      int common = 0;
      for (std::size_t x = 0; x < a[k].values().size(); ++x) {
        for (std::size_t y = 0; y < b[k].values().size(); ++y) {
          const double left = a[k].values()[x], right = b[k].values()[y];
          largest = std::max({largest, std::abs(left), std::abs(right)});
          sum += left > right ? 1.0L : left == right ? 0.5L : 0.0L;
          if (a[k].seeds()[x] != b[k].seeds()[y]) continue;
          ++common;
          by_seed[a[k].seeds()[x]].first += 1;
          by_seed[a[k].seeds()[x]].second += static_cast<long double>(left) - right;
          difference += static_cast<long double>(left) - right;
        }
      }
      better += sum / (a[k].values().size() * b[k].values().size()) / a.size();
      paired = paired && common > 0;
      if (common > 0) gain += difference / common / a.size();
    }
    expect(PlainInterquartileMean(all), PooledInterquartileMean(values), largest);
    expect(mean, MeanOfMeans(values), largest);
    expect(better, ProbabilityOfImprovement(a, b), 1.0);
    const double p = rng.Uniform();
    std::vector<double> order = all;
    expect(PlainQuantile(all, p), Quantile(order, p), largest);
    const std::optional<PairedGain> got = PairedGainOf(a, b, {.resamples = 20});
    ASSERT_EQ(got.has_value(), paired);
    if (!paired) continue;
    int pairs = 0, wins = 0;
    for (const auto& [seed, of_tasks] : by_seed) {
      if (of_tasks.first < a.size()) continue;
      ++pairs;
      wins += of_tasks.second > 0.0L;
    }
    EXPECT_EQ(got->n, pairs);
    EXPECT_EQ(got->wins, wins);
    expect(gain, got->mean, largest);
  }
  RecordProperty("worst_relative_error", StrCat(worst));
}

// The bootstrap beside the distribution over all n^n resamples, as far as 2,000 draws can tell.
TEST(Statistics, IntervalsOfAThousandTablesBesideAllResamples) {
  Rng rng(27, "tables");
  constexpr int kResamples = 2000;
  constexpr double kTail = 0.025;
  const double error = 5.0 * std::sqrt(kTail * (1.0 - kTail) / kResamples);
  for (std::uint64_t i = 0; i < 1000 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE(i);
    const auto n = static_cast<std::size_t>(2 + rng.Index(3));
    std::vector<double> values(n);
    for (double& value : values) value = rng.Normal();
    std::vector<double> means;
    std::vector<std::size_t> chosen(n, 0);
    for (bool more = true; more;) {
      std::vector<double> sample;
      for (const std::size_t place : chosen) sample.push_back(values[place]);
      means.push_back(static_cast<double>(PlainMean(sample)));
      std::size_t digit = 0;
      while (digit < n && ++chosen[digit] == n) chosen[digit++] = 0;
      more = digit < n;
    }
    std::sort(means.begin(), means.end());
    const auto at = [&means](double p) {
      const double place = std::clamp(p, 0.0, 1.0) * static_cast<double>(means.size());
      return means[std::min(means.size() - 1, static_cast<std::size_t>(place))];
    };
    const std::vector<SeedScores> task{Scores(values)};
    const Interval got =
        StratifiedBootstrap(task, MeanOfMeans, {.resamples = kResamples, .seed = i}).value();
    const double tolerance = 1e-12;
    EXPECT_GE(got.low, at(kTail - error) - tolerance);
    EXPECT_LE(got.low, at(kTail + error) + tolerance);
    EXPECT_GE(got.high, at(1.0 - kTail - error) - tolerance);
    EXPECT_LE(got.high, at(1.0 - kTail + error) + tolerance);
  }
}

}  // namespace
}  // namespace msrl::report
