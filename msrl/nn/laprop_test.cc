#include "msrl/nn/laprop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/nn/parameters.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::Tol;

// No multiples of a vector, one tensor that starts at zero.
const std::vector<NamedTensor> kTensors{{"a", 7, 3, 0}, {"b", 5, 1, 21}, {"zero", 9, 1, 26}};
constexpr std::size_t kCount = 35;

TEST(LaPropTest, MatchesTheFormula) {
  Rng rng(1, "laprop");
  const LaPropOptions options{.beta2 = 0.99, .epsilon = 1e-6};
  LaProp laprop(kTensors, options);
  FloatBuffer p(kCount);
  for (std::size_t i = 0; i < 26; ++i) p[i] = static_cast<float>(rng.Normal());
  std::vector<double> q(p.begin(), p.end());
  std::vector<double> m(kCount);
  std::vector<double> v(kCount);
  int clipped = 0;
  int unclipped = 0;
  for (int t = 1; t <= 10; ++t) {
    const double rate = 0.003 * t;
    FloatBuffer g(kCount);
    for (float& value : g) value = static_cast<float>(rng.Normal() * (t % 2 == 0 ? 0.02 : 1.0));
    laprop.Step(p, g, rate);
    for (const NamedTensor& tensor : kTensors) {
      double norm_g = 0.0;
      double norm_w = 0.0;
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i) {
        norm_g += static_cast<double>(g[i]) * g[i];
        norm_w += q[i] * q[i];
      }
      const double ratio = std::sqrt(norm_g) / (0.3 * std::max(1e-3, std::sqrt(norm_w)));
      ++(ratio > 1.0 ? clipped : unclipped);
      for (std::size_t i = tensor.offset; i < tensor.offset + tensor.size(); ++i) {
        const double d = g[i] / std::max(1.0, ratio);
        v[i] = 0.99 * v[i] + 0.01 * d * d;
        m[i] = 0.9 * m[i] + 0.1 * d / (std::sqrt(v[i] / (1.0 - std::pow(0.99, t))) + 1e-6);
        q[i] -= rate * m[i] / (1.0 - std::pow(0.9, t));
        ASSERT_NEAR(p[i], q[i], Tol(2e-6)) << tensor.name;
        ASSERT_NEAR(laprop.mean()[i], m[i], Tol(1e-5));
        ASSERT_NEAR(laprop.variance()[i], v[i], Tol(1e-6));
      }
    }
  }
  EXPECT_EQ(laprop.step_count(), 10);
  EXPECT_GT(clipped, 5);
  EXPECT_GT(unclipped, 5);
}

// Gradients so small that their squares are none must not become large steps.
TEST(LaPropTest, TinyGradientsDoNotMove) {
  const std::vector<NamedTensor> one{{"w", 4, 1, 0}};
  for (const float size : {0.0F, 1e-30F, 1e-19F, 2e-18F}) {
    LaProp laprop(one);
    FloatBuffer p(4, 1.0F);
    laprop.Step(p, FloatBuffer(4, size), 0.1);
    for (const float value : p) EXPECT_EQ(value, 1.0F) << size;
  }
  LaProp laprop(one);
  FloatBuffer p(4, 1.0F);
  laprop.Step(p, FloatBuffer(4, -1e-12F), 0.1);
  for (const float value : p) EXPECT_NEAR(value, 1.1F, Tol(1e-5));
  // what is no number stays visible
  laprop.Step(p, FloatBuffer(4, std::numeric_limits<float>::quiet_NaN()), 0.1);
  for (const float value : p) EXPECT_TRUE(std::isnan(value));
}

TEST(LaPropTest, ClippingCanBeOff) {
  const FloatBuffer g(kCount, 100.0F);
  LaProp on(kTensors);
  LaProp off(kTensors, {.clip = 0.0});
  FloatBuffer p(kCount, 1.0F);
  on.Step(p, g, 0.1);
  off.Step(p, g, 0.1);
  EXPECT_LT(on.variance()[0], 1e-3F);
  EXPECT_NEAR(off.variance()[0], 10.0, Tol(1e-4));
}

TEST(LaPropTest, IsTheOptimiserOfParameters) {
  Parameters parameters({.laprop = LaPropOptions{}, .target = true});
  const Parameter w = parameters.Add("w", 3, 2);
  InitConstant(w, 2.0);
  parameters.Finish();
  EXPECT_THROW(parameters.adam(), InvariantError);
  std::ranges::fill(parameters.gradients(), 0.1F);
  const std::int64_t before = AllocationCount();
  parameters.Step(0.01, /*tau=*/0.5);
  EXPECT_EQ(AllocationCount(), before);
  EXPECT_NEAR(w.value()(0, 0), 1.99, Tol(1e-6));
  EXPECT_NEAR(parameters.target()[0], 1.995, Tol(1e-6));
  EXPECT_EQ(parameters.laprop().step_count(), 1);
}

TEST(LaPropTest, ImpossibleOptionsAreUserErrors) {
  for (const LaPropOptions& options :
       {LaPropOptions{.beta1 = 1.0}, LaPropOptions{.beta2 = -0.1}, LaPropOptions{.epsilon = 0.0},
        LaPropOptions{.clip = -1.0}, LaPropOptions{.smallest_norm = 0.0}}) {
    EXPECT_THROW(LaProp(kTensors, options), UserError);
  }
}

}  // namespace
}  // namespace msrl
