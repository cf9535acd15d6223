#include "msrl/nn/two_hot.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/core/check.h"
#include "msrl/nn/static_graph.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

TEST(TwoHotTest, SymlogAndItsInverse) {
  EXPECT_NEAR(Symlog(10.0F), 2.397895, Tol(1e-6));
  EXPECT_NEAR(Symexp(2.0F), 6.389056, Tol(1e-6));
  for (const float x : {-700.0F, -0.01F, 0.0F, 3.0F}) {
    EXPECT_NEAR(Symexp(Symlog(x)), x, Tol(1e-6) * (1.0F + std::abs(x)));
    EXPECT_EQ(Symlog(-x), -Symlog(x));
  }
}

TEST(TwoHotTest, PlacesOfTdMpc2) {
  const TwoHotBins bins = TwoHotBins::Symlog(101, 10.0);
  const auto five = bins.Find(5.0F);
  EXPECT_EQ(five.below, 58);
  EXPECT_NEAR(five.above, 0.958797, Tol(1e-5));
  const auto minus_three = bins.Find(-3.0F);
  EXPECT_NEAR(static_cast<float>(minus_three.below) + minus_three.above, 43.068528, Tol(1e-5));
}

TEST(TwoHotTest, PlacesOfDreamer) {
  const TwoHotBins bins = TwoHotBins::Symexp(255, 20.0);
  EXPECT_EQ(bins.points()[127], 0.0F);
  EXPECT_NEAR(bins.points()[126], -0.170558, Tol(1e-6));
  EXPECT_NEAR(bins.points()[128], 0.170558, Tol(1e-6));
  EXPECT_NEAR(bins.points()[138], 4.653549, Tol(1e-6));
  EXPECT_NEAR(bins.points()[139], 5.617805, Tol(1e-6));
  const auto five = bins.Find(5.0F);
  EXPECT_EQ(five.below, 138);
  EXPECT_NEAR(five.above, 0.359294, Tol(1e-6));
}

TEST(TwoHotTest, TheMeanIsTheNumber) {
  for (const TwoHotBins& bins : {TwoHotBins::Even(10, 40.0), TwoHotBins::Symlog(101, 10.0),
                                 TwoHotBins::Symexp(255, 20.0), TwoHotBins::Symexp(4, 5.0)}) {
    for (const float x : {-39.0F, -3.0F, -1e-3F, 0.0F, 0.7F, 22.0F}) {
      const auto [below, above] = bins.Find(x);
      ASSERT_GE(below, 0);
      ASSERT_LE(below, bins.count() - 2);
      const auto at = static_cast<std::size_t>(below);
      const float mean = (1.0F - above) * bins.points()[at] + above * bins.points()[at + 1];
      EXPECT_NEAR(bins.FromMean(mean), x, Tol(2e-5) * (1.0F + std::abs(x))) << bins.count();
    }
  }
}

TEST(TwoHotTest, WhatIsOutsideIsAtTheEdge) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const TwoHotBins& bins :
       {TwoHotBins::Even(9, 2.0), TwoHotBins::Symlog(9, 2.0), TwoHotBins::Symexp(9, 2.0)}) {
    for (const float x : {7.0F, 1e30F, kInfinity}) {
      EXPECT_EQ(bins.Find(x).below, 7);
      EXPECT_EQ(bins.Find(x).above, 1.0F);
      EXPECT_EQ(bins.Find(-x).below, 0);
      EXPECT_EQ(bins.Find(-x).above, 0.0F);
    }
    EXPECT_EQ(bins.Find(std::nanf("")).below, 0);
    EXPECT_TRUE(std::isnan(bins.Find(std::nanf("")).above));
  }
  EXPECT_THROW(TwoHotBins::Even(1, 2.0), InvariantError);
  EXPECT_THROW(TwoHotBins::Symlog(9, 0.0), InvariantError);
}

// A head that starts at zero predicts zero; a loss with no number is no number.
TEST(TwoHotTest, EqualLogitsPredictZeroExactly) {
  for (const TwoHotBins& bins : {TwoHotBins::Symlog(101, 10.0), TwoHotBins::Symexp(255, 20.0),
                                 TwoHotBins::Symexp(16, 20.0)}) {
    StaticGraph graph;
    const Node logits = graph.InputWithGradient(bins.count(), 2);
    const Node x = graph.Input(1, 2);
    const Node mean = graph.TwoHotMean(logits, bins);
    const Node loss = graph.TwoHotCrossEntropy(logits, x, bins);
    graph.Finish();
    graph.input(logits).col(1).setConstant(3.7F);
    graph.input(x) << 1.0F, std::nanf("");
    graph.Forward();
    EXPECT_EQ(graph.value(mean)(0, 0), 0.0F);
    EXPECT_EQ(graph.value(mean)(0, 1), 0.0F);
    EXPECT_NEAR(graph.value(loss)(0, 0), std::log(bins.count()), Tol(1e-5));
    EXPECT_TRUE(std::isnan(graph.value(loss)(0, 1)));
  }
}

}  // namespace
}  // namespace msrl
