#include "msrl/core/statistics.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

TEST(Auroc, ByHand) {
  const std::array high{3.0, 4.0};
  const std::array low{1.0, 2.0};
  EXPECT_EQ(Auroc(high, low), 1.0);
  EXPECT_EQ(Auroc(low, high), 0.0);
  // pairs: 1>0, 1=1 (half), 2>0, 2>1
  const std::array positives{1.0, 2.0};
  const std::array negatives{0.0, 1.0};
  EXPECT_EQ(Auroc(positives, negatives), 3.5 / 4.0);
  const std::array same{5.0, 5.0, 5.0};
  EXPECT_EQ(Auroc(same, same), 0.5);
  EXPECT_THROW(Auroc({}, same), InvariantError);
}

TEST(Auroc, HandlesInfinities) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::array positives{kInfinity, 1.0};
  const std::array negatives{0.0, kInfinity};
  EXPECT_EQ(Auroc(positives, negatives), (1.0 + 0.5 + 1.0 + 0.0) / 4.0);
}

TEST(ExpectedCalibrationError, ByHand) {
  // bin 0: 0.05 and 0.09, one of two happened; bin 9: 0.95 and 1, both happened
  const std::array p{0.05, 0.09, 0.95, 1.0};
  const std::array<std::uint8_t, 4> y{0, 1, 1, 1};
  EXPECT_NEAR(ExpectedCalibrationError(p, y), (1.0 - 0.14 + 0.05) / 4.0, Tol(1e-15));
  // one bin: only the means count
  EXPECT_NEAR(ExpectedCalibrationError(p, y, 1), (3.0 - 2.09) / 4.0, Tol(1e-15));
  EXPECT_THROW(ExpectedCalibrationError({}, {}), InvariantError);
  EXPECT_THROW(ExpectedCalibrationError(p, std::span(y).first(3)), InvariantError);
  const std::array bad{0.5, 0.5, 0.5, 1.5};
  EXPECT_THROW(ExpectedCalibrationError(bad, y), InvariantError);
}

TEST(ExpectedCalibrationError, IsSmallForTrueProbabilitiesOnly) {
  Rng rng(0, "calibration");
  std::vector<double> p, squared;
  std::vector<std::uint8_t> y;
  for (int n = 0; n < 20'000; ++n) {
    p.push_back(rng.Uniform());
    squared.push_back(p.back() * p.back());
    y.push_back(rng.Bernoulli(p.back()) ? 1 : 0);
  }
  EXPECT_LT(ExpectedCalibrationError(p, y), 0.02);
  // the mean of p - p^2
  EXPECT_NEAR(ExpectedCalibrationError(squared, y), 1.0 / 6.0, 0.02);
}

TEST(BrierScore, ByHand) {
  const std::array p{0.0, 0.5, 1.0};
  const std::array<std::uint8_t, 3> y{0, 1, 0};
  EXPECT_NEAR(BrierScore(p, y), 1.25 / 3.0, Tol(1e-15));
  EXPECT_THROW(BrierScore({}, {}), InvariantError);
}

TEST(Correlation, KnownValues) {
  const std::vector<double> a{1, 2, 3, 4, 5};
  const std::vector<double> b{2, 1, 4, 3, 5};
  // 1 - 6 sum d^2 / (n (n^2 - 1)) = 1 - 24 / 120
  EXPECT_NEAR(SpearmanCorrelation(a, b), 0.8, Tol(1e-12));
  EXPECT_NEAR(PearsonCorrelation(a, b), 0.8, Tol(1e-12));
  const std::vector<double> c{1, 10, 100, 1000, 10000};
  EXPECT_NEAR(SpearmanCorrelation(a, c), 1.0, Tol(1e-12));
  EXPECT_LT(PearsonCorrelation(a, c), 0.8);
  const std::vector<double> down{5, 4, 3, 2, 1};
  EXPECT_NEAR(SpearmanCorrelation(a, down), -1.0, Tol(1e-12));
}

TEST(Correlation, EqualValuesShareTheirRank) {
  const std::vector<double> values{3, 1, 3, 2, 3};
  EXPECT_EQ(Ranks(values), (std::vector<double>{3, 0, 3, 1, 3}));
  const std::vector<double> constant(5, 7.0);
  EXPECT_EQ(SpearmanCorrelation(values, constant), 0.0);
  EXPECT_EQ(SpearmanCorrelation({}, {}), 0.0);
  // whose mean is not exactly itself
  const std::vector<double> tenths(5, 0.1);
  EXPECT_EQ(PearsonCorrelation(values, tenths), 0.0);
  EXPECT_NE(PearsonCorrelation(values, std::vector<double>{0.1, 0.1, 0.1, 0.1, 0.1 + 1e-9}), 0.0);
}

TEST(Correlation, NoiseLowersIt) {
  Rng rng(1, "noise");
  std::vector<double> a;
  std::vector<double> half;
  std::vector<double> none;
  for (int i = 0; i < 20000; ++i) {
    a.push_back(rng.Normal());
    half.push_back(a.back() + rng.Normal());
    none.push_back(rng.Normal());
  }
  EXPECT_NEAR(PearsonCorrelation(a, half), std::sqrt(0.5), Tol(0.02));
  EXPECT_NEAR(SpearmanCorrelation(a, none), 0.0, Tol(0.03));
}

TEST(Correlation, MeanAndStd) {
  const MeanStd two = MeanAndStd(std::vector<double>{1.0, 3.0});
  EXPECT_EQ(two.mean, 2.0);
  EXPECT_NEAR(two.std, std::sqrt(2.0), Tol(1e-12));
  EXPECT_EQ(MeanAndStd(std::vector<double>{4.0}).std, 0.0);
}

}  // namespace
}  // namespace msrl
