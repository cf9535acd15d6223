#include "msrl/transfer/correlation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "msrl/core/rng.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

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
