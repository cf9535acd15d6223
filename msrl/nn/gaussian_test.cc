#include "msrl/nn/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "msrl/core/check.h"
#include "msrl/nn/squashed_gaussian.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/gradients.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::RandomMatrix;
using testing::Slope;
using testing::Tol;

constexpr int kActions = 3;
constexpr int kSamples = 11;

double LogNormal(double x, double mean, double log_std) {
  const double z = (x - mean) / std::exp(log_std);
  return -0.5 * z * z - log_std - 0.5 * std::log(2.0 * std::numbers::pi);
}

TEST(GaussianTest, LogProbAndGradients) {
  Rng rng(1, "gaussian");
  const Eigen::MatrixXf mean = RandomMatrix(kActions, kSamples, rng);
  const Eigen::MatrixXf action = RandomMatrix(kActions, kSamples, rng);
  const std::vector<float> log_std{-0.7F, 0.0F, 0.4F};
  std::vector<float> log_prob(kSamples);
  GaussianLogProb(mean, log_std, action, log_prob);
  std::vector<float> d(kSamples);
  for (float& value : d) value = static_cast<float>(rng.Normal());
  Eigen::MatrixXf d_mean(kActions, kSamples);
  std::vector<float> d_log_std(kActions);
  GaussianLogProbBackward(mean, log_std, action, d, d_mean, d_log_std);

  Eigen::MatrixXd mu = mean.cast<double>();
  std::vector<double> s(log_std.begin(), log_std.end());
  const auto sample = [&](int b) {
    double sum = 0.0;
    for (int i = 0; i < kActions; ++i) sum += LogNormal(action(i, b), mu(i, b), s[i]);
    return sum;
  };
  const auto loss = [&] {
    double sum = 0.0;
    for (int b = 0; b < kSamples; ++b) sum += d[b] * sample(b);
    return sum;
  };
  for (int b = 0; b < kSamples; ++b) {
    EXPECT_NEAR(log_prob[b], sample(b), Tol(2e-5));
    for (int i = 0; i < kActions; ++i) EXPECT_NEAR(d_mean(i, b), Slope(mu(i, b), loss), Tol(1e-4));
  }
  for (int i = 0; i < kActions; ++i) EXPECT_NEAR(d_log_std[i], Slope(s[i], loss), Tol(1e-4));
}

TEST(GaussianTest, EntropyAndSamples) {
  const std::vector<float> log_std{-0.7F, 0.5F};
  EXPECT_NEAR(GaussianEntropy(log_std), 1.0 + std::log(2.0 * std::numbers::pi) - 0.2, Tol(1e-6));
  const Eigen::MatrixXf mean = Eigen::MatrixXf::Constant(2, 1, 3.0F);
  const Eigen::MatrixXf noise = Eigen::MatrixXf::Constant(2, 1, -2.0F);
  Eigen::MatrixXf action(2, 1);
  GaussianSample(mean, log_std, noise, action);
  EXPECT_NEAR(action(0, 0), 3.0 - 2.0 * std::exp(-0.7), Tol(1e-6));
  EXPECT_NEAR(action(1, 0), 3.0 - 2.0 * std::exp(0.5), Tol(1e-6));
  EXPECT_THROW(GaussianSample(mean, std::span(log_std).first(1), noise, action), InvariantError);
}

double LogStd(const LogStdOptions& options, double x) {
  if (options.kind == LogStdKind::kClamp) return std::min(std::max(x, options.low), options.high);
  return options.low + 0.5 * (options.high - options.low) * (std::tanh(x) + 1.0);
}

TEST(SquashedGaussianTest, LogProbAndGradients) {
  for (const LogStdOptions& options : {LogStdOptions{LogStdKind::kClamp, -1.0, 0.8},
                                       LogStdOptions{LogStdKind::kTanh, -5.0, 2.0}}) {
    Rng rng(2, "gaussian");
    const Eigen::MatrixXf head = RandomMatrix(2 * kActions, kSamples, rng);
    const Eigen::MatrixXf noise = RandomMatrix(kActions, kSamples, rng);
    const Eigen::MatrixXf d_action = RandomMatrix(kActions, kSamples, rng);
    std::vector<float> d_log_prob(kSamples);
    for (float& value : d_log_prob) value = static_cast<float>(rng.Normal());

    SquashedGaussian policy(kActions, kSamples + 3, options);
    Eigen::MatrixXf action(kActions, kSamples);
    Eigen::MatrixXf d_head(2 * kActions, kSamples);
    std::vector<float> log_prob(kSamples);
    const std::int64_t before = AllocationCount();
    policy.Sample(head, noise, action, log_prob);
    policy.Backward(d_action, d_log_prob, d_head);
    EXPECT_EQ(AllocationCount(), before);

    Eigen::MatrixXd x = head.cast<double>();
    const auto evaluate = [&](int b, double* log_p) {
      double sum = 0.0;
      *log_p = 0.0;
      for (int i = 0; i < kActions; ++i) {
        const double s = LogStd(options, x(kActions + i, b));
        const double u = x(i, b) + std::exp(s) * noise(i, b);
        *log_p += LogNormal(u, x(i, b), s) - std::log(1.0 - std::tanh(u) * std::tanh(u));
        sum += d_action(i, b) * std::tanh(u);
        EXPECT_LT(std::abs(std::tanh(u) - action(i, b)), 1e-4);
      }
      return sum + d_log_prob[b] * *log_p;
    };
    for (int b = 0; b < kSamples; ++b) {
      double log_p = 0.0;
      evaluate(b, &log_p);
      EXPECT_NEAR(log_prob[b], log_p, Tol(3e-5));
      const auto loss = [&] {
        double ignored = 0.0;
        return evaluate(b, &ignored);
      };
      for (int i = 0; i < 2 * kActions; ++i) {
        EXPECT_NEAR(d_head(i, b), Slope(x(i, b), loss), Tol(1e-4));
      }
    }
  }
}

TEST(SquashedGaussianTest, GoldenNumbers) {
  // u = 0.5 of a standard normal: log N(u) - log(1 - tanh^2 u)
  SquashedGaussian standard(1, 1);
  Eigen::MatrixXf action(1, 1);
  float log_prob = 0.0F;
  standard.Sample(Eigen::Vector2f(0.0F, 0.0F), Eigen::Matrix<float, 1, 1>(0.5F), action,
                  std::span(&log_prob, 1));
  EXPECT_NEAR(log_prob, -0.803710, Tol(1e-6));
  EXPECT_NEAR(action(0, 0), std::tanh(0.5), Tol(1e-6));

  // the standard deviation where the head says 0, between the usual bounds of SAC and of TD-MPC2
  for (const auto& [low, sigma] : {std::pair(-5.0, 0.22313), std::pair(-10.0, 0.018316)}) {
    SquashedGaussian policy(1, 1, {.kind = LogStdKind::kTanh, .low = low, .high = 2.0});
    policy.Sample(Eigen::Vector2f(0.0F, 0.0F), Eigen::Matrix<float, 1, 1>(1.0F), action,
                  std::span(&log_prob, 1));
    EXPECT_NEAR(std::atanh(action(0, 0)), sigma, Tol(1e-5));
  }
}

TEST(SquashedGaussianTest, SaturatedActionsStayFinite) {
  SquashedGaussian policy(1, 2);
  Eigen::MatrixXf head(2, 2);
  head << 40.0F, -40.0F, 0.0F, 0.0F;
  const Eigen::MatrixXf noise = Eigen::MatrixXf::Zero(1, 2);
  Eigen::MatrixXf action(1, 2);
  std::vector<float> log_prob(2);
  policy.Sample(head, noise, action, log_prob);
  EXPECT_EQ(action(0, 0), 1.0F);
  EXPECT_EQ(action(0, 1), -1.0F);
  // log(1 - tanh^2 u) is 2 log 2 - 2 |u| there
  const double expected = LogNormal(0.0, 0.0, 0.0) - 2.0 * std::numbers::ln2 + 80.0;
  EXPECT_NEAR(log_prob[0], expected, Tol(1e-4));
  EXPECT_NEAR(log_prob[1], expected, Tol(1e-4));
}

TEST(SquashedGaussianTest, ModeIsTanhOfTheMean) {
  const SquashedGaussian policy(2, 1);
  Eigen::MatrixXf head(4, 1);
  head << 0.5F, -2.0F, 1.0F, 1.0F;
  Eigen::MatrixXf action(2, 1);
  policy.Mode(head, action);
  EXPECT_NEAR(action(0, 0), std::tanh(0.5), Tol(1e-6));
  EXPECT_NEAR(action(1, 0), std::tanh(-2.0), Tol(1e-6));
}

TEST(SquashedGaussianTest, RefusesWhatCantBe) {
  EXPECT_THROW(SquashedGaussian(1, 1, {LogStdKind::kClamp, 2.0, 2.0}), UserError);
  EXPECT_THROW(SquashedGaussian(0, 1), InvariantError);
  SquashedGaussian policy(2, 3);
  Eigen::MatrixXf action(2, 3);
  std::vector<float> log_prob(3);
  const Eigen::MatrixXf head = Eigen::MatrixXf::Zero(4, 3);
  const Eigen::MatrixXf noise = Eigen::MatrixXf::Zero(2, 3);
  EXPECT_THROW(policy.Sample(head.topRows(3), noise, action, log_prob), InvariantError);
  EXPECT_THROW(policy.Sample(head, noise.leftCols(2), action, log_prob), InvariantError);
  EXPECT_THROW(policy.Sample(head, noise, action, std::span(log_prob).first(2)), InvariantError);
}

}  // namespace
}  // namespace msrl
