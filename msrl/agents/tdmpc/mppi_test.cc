#include "msrl/agents/tdmpc/mppi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"
#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using testing::Tol;
using testing::UserErrorText;

TEST(MppiTest, WeightsAreThoseOfTheFormula) {
  const std::vector<float> values{10.0F, 9.0F, 8.0F, 6.0F};
  std::vector<float> weights(4);
  MppiWeights(values, 0.5, weights);
  const std::vector<double> expected{0.4740, 0.2875, 0.1744, 0.0641};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(weights[i], expected[i], Tol(5e-5));
  // far apart: nothing overflows
  MppiWeights(std::vector<float>{-3e6F, 2e6F}, 0.5, std::span(weights).first(2));
  EXPECT_EQ(weights[0], 0.0F);
  EXPECT_EQ(weights[1], 1.0F);
}

TEST(MppiTest, FitsMeanAndDeviationOfTheElites) {
  const MppiSettings settings{.horizon = 2,
                              .samples = 4,
                              .policy_samples = 0,
                              .elites = 2,
                              .temperature = std::log(3.0),
                              .min_std = 0.1,
                              .max_std = 0.3};
  Mppi mppi(settings, 1);
  mppi.Begin(Eigen::MatrixXf::Zero(1, 2));
  Eigen::MatrixXf actions(1, 8);  // four of the first step, four of the second
  actions << 0.0F, 0.8F, 0.4F, -1.0F, 0.5F, 0.5F, 0.5F, 0.9F;
  // elites: the second (weight 3/4) and the third (1/4)
  mppi.Fit(actions, std::vector<float>{-5.0F, 2.0F, 1.0F, 0.5F});
  EXPECT_NEAR(mppi.mean()(0, 0), 0.7F, Tol(1e-6));
  EXPECT_NEAR(mppi.std()(0, 0), std::sqrt(0.75 * 0.01 + 0.25 * 0.09), Tol(1e-6));
  EXPECT_NEAR(mppi.mean()(0, 1), 0.5F, Tol(1e-6));
  EXPECT_NEAR(mppi.std()(0, 1), 0.1F, Tol(1e-6));  // none: the least
  std::array<int, 4> counts{};
  Rng rng(1, "choose");
  for (int i = 0; i < 4000; ++i) ++counts[static_cast<std::size_t>(mppi.Choose(rng))];
  EXPECT_EQ(counts[0] + counts[3], 0);
  EXPECT_NEAR(counts[1], 3000, 120);
}

TEST(MppiTest, SamplesStayInTheBoxAndLeaveProposalsAlone) {
  const MppiSettings settings{.horizon = 3, .samples = 50, .policy_samples = 10, .elites = 5};
  Mppi mppi(settings, 2);
  Eigen::MatrixXf mean = Eigen::MatrixXf::Zero(2, 3);
  mean(1, 2) = 0.9F;
  mppi.Begin(mean);
  Eigen::MatrixXf actions = Eigen::MatrixXf::Constant(2, 150, 7.0F);
  Rng rng(1, "sample");
  mppi.Sample(rng, actions);
  for (int t = 0; t < 3; ++t) {
    EXPECT_TRUE((actions.middleCols(50 * t, 10).array() == 7.0F).all());
    const Eigen::MatrixXf drawn = actions.middleCols(50 * t + 10, 40);
    EXPECT_EQ(drawn.maxCoeff(), 1.0F);
    EXPECT_EQ(drawn.minCoeff(), -1.0F);
  }
  EXPECT_GT(actions.middleCols(110, 40).row(1).mean(), actions.middleCols(110, 40).row(0).mean());
}

// The best of a smooth function of two actions in two steps.
TEST(MppiTest, FindsTheOptimum) {
  const MppiSettings settings{.horizon = 2, .samples = 64, .policy_samples = 0, .elites = 16};
  Mppi mppi(settings, 2);
  Eigen::MatrixXf best(2, 2);
  best << 0.3F, -0.6F, 0.9F, -0.2F;
  Eigen::MatrixXf actions(2, 128);
  std::vector<float> values(64);
  Rng rng(3, "plan");
  mppi.Begin(Eigen::MatrixXf::Zero(2, 2));
  std::int64_t allocations = 0;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t before = testing::AllocationCount();
    mppi.Sample(rng, actions);
    for (int k = 0; k < 64; ++k) {
      float sum = 0.0F;
      for (int t = 0; t < 2; ++t) sum -= (actions.col(64 * t + k) - best.col(t)).squaredNorm();
      values[static_cast<std::size_t>(k)] = 20.0F * sum;
    }
    mppi.Fit(actions, values);
    allocations += testing::AllocationCount() - before;
  }
  EXPECT_LT((mppi.mean() - best).cwiseAbs().maxCoeff(), 0.06F);
  EXPECT_LT(mppi.std().maxCoeff(), 0.2F);
  EXPECT_EQ(allocations, 0);
}

TEST(MppiTest, SettingsThatContradictEachOther) {
  EXPECT_NE(UserErrorText([] {
              Mppi({.samples = 8, .policy_samples = 2, .elites = 9}, 1);
            }).find("'plan_elites'"),
            std::string::npos);
  EXPECT_NE(UserErrorText([] {
              Mppi({.samples = 8, .policy_samples = 8, .elites = 2}, 1);
            }).find("'plan_policy_samples'"),
            std::string::npos);
  EXPECT_NE(UserErrorText([] { Mppi({.min_std = 3.0}, 1); }).find("'plan_min_std'"),
            std::string::npos);
}

}  // namespace
}  // namespace msrl
