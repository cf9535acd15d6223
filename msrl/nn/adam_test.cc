#include "msrl/nn/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "msrl/core/check.h"
#include "msrl/core/rng.h"
#include "msrl/testing/allocation_counter.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::AllocationCount;
using testing::Tol;

FloatBuffer RandomBuffer(std::size_t n, Rng& rng) {
  FloatBuffer buffer(n);
  for (float& value : buffer) value = static_cast<float>(rng.Normal());
  return buffer;
}

TEST(AdamTest, MatchesTheFormula) {
  Rng rng(1, "adam");
  constexpr std::size_t kCount = 21;  // no multiple of a vector
  const AdamOptions options{.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-6, .weight_decay = 0.1};
  Adam adam(kCount, options);
  FloatBuffer p = RandomBuffer(kCount, rng);
  std::vector<double> q(p.begin(), p.end());
  std::vector<double> m(kCount);
  std::vector<double> v(kCount);
  for (int t = 1; t <= 10; ++t) {
    const double rate = 0.01 * t;
    const FloatBuffer g = RandomBuffer(kCount, rng);
    EXPECT_EQ(adam.Step(p, g, rate), 0.0);
    for (std::size_t i = 0; i < kCount; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * g[i];
      v[i] = 0.99 * v[i] + 0.01 * g[i] * g[i];
      const double m_hat = m[i] / (1.0 - std::pow(0.9, t));
      const double v_hat = v[i] / (1.0 - std::pow(0.99, t));
      q[i] = q[i] * (1.0 - rate * 0.1) - rate * m_hat / (std::sqrt(v_hat) + 1e-6);
      ASSERT_NEAR(p[i], q[i], Tol(1e-6));
      ASSERT_NEAR(adam.mean()[i], m[i], Tol(1e-6));
      ASSERT_NEAR(adam.variance()[i], v[i], Tol(1e-6));
    }
  }
  EXPECT_EQ(adam.step_count(), 10);
}

TEST(AdamTest, ClipsTheNorm) {
  Adam adam(2, {.max_norm = 1.0});
  FloatBuffer p(2);
  const FloatBuffer large{3.0F, 4.0F};
  EXPECT_NEAR(adam.Step(p, large, 0.1), 5.0, Tol(1e-6));
  EXPECT_NEAR(adam.mean()[0], 0.1 * 0.6, Tol(1e-6));
  Adam other(2, {.max_norm = 10.0});
  other.Step(p, large, 0.1);
  EXPECT_NEAR(other.mean()[0], 0.1 * 3.0, Tol(1e-6));
}

TEST(AdamTest, ResumesExactly) {
  Rng rng(2, "adam");
  Adam adam(100);
  FloatBuffer p = RandomBuffer(100, rng);
  for (int t = 0; t < 5; ++t) adam.Step(p, RandomBuffer(100, rng), 1e-2);
  Adam resumed(100);
  std::copy(adam.mean().begin(), adam.mean().end(), resumed.mean().begin());
  std::copy(adam.variance().begin(), adam.variance().end(), resumed.variance().begin());
  resumed.set_step_count(adam.step_count());
  Adam forgetful = resumed;
  forgetful.set_step_count(0);
  FloatBuffer q = p;
  FloatBuffer r = p;
  const FloatBuffer g = RandomBuffer(100, rng);
  adam.Step(p, g, 1e-2);
  resumed.Step(q, g, 1e-2);
  forgetful.Step(r, g, 1e-2);
  EXPECT_EQ(p, q);
  EXPECT_NE(p, r);
}

TEST(AdamTest, FusedPolyakIsAdamThenPolyak) {
  Rng rng(3, "adam");
  for (const std::size_t count : {1U, 8U, 43U}) {
    Adam adam(count);
    Adam fused(count);
    FloatBuffer p = RandomBuffer(count, rng);
    FloatBuffer q = p;
    FloatBuffer target = RandomBuffer(count, rng);
    FloatBuffer fused_target = target;
    const FloatBuffer start = target;
    const FloatBuffer g = RandomBuffer(count, rng);
    adam.Step(p, g, 1e-2);
    PolyakUpdate(target, p, 0.1);
    fused.Step(q, g, 1e-2, fused_target, 0.1);
    EXPECT_EQ(p, q);
    EXPECT_EQ(target, fused_target);
    EXPECT_NE(target, start);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_NEAR(target[i], 0.9 * start[i] + 0.1 * p[i], Tol(1e-6));
    }
  }
}

TEST(AdamTest, MomentsOfAnUnusedWeightBecomeZero) {
  Adam adam(16);
  FloatBuffer p(16, 1.0F);
  FloatBuffer g(16, 1e-3F);
  adam.Step(p, g, 1e-3);
  std::fill(g.begin(), g.end(), 0.0F);
  for (int t = 0; t < 1500; ++t) adam.Step(p, g, 1e-3);
#if defined(__x86_64__)
  EXPECT_EQ(adam.mean()[3], 0.0F);
#endif
  // outside, denormals are as before
  volatile float tiny = std::numeric_limits<float>::min();
  EXPECT_GT(tiny / 4.0F, 0.0F);
}

TEST(AdamTest, AllocatesNothing) {
  Adam adam(1000, {.max_norm = 1.0});
  FloatBuffer p(1000, 1.0F);
  FloatBuffer target(1000);
  const std::int64_t before = AllocationCount();
  adam.Step(p, p, 1e-3);
  adam.Step(p, p, 1e-3, target, 0.1);
  PolyakUpdate(target, p, 0.1);
  EXPECT_EQ(AllocationCount(), before);
}

TEST(AdamTest, NormIsAccurate) {
  const FloatBuffer values(12345, 0.1F);
  EXPECT_NEAR(Norm(values), std::sqrt(12345.0) * static_cast<double>(0.1F), Tol(1e-5));
  EXPECT_EQ(Norm({}), 0.0);
}

TEST(AdamTest, RefusesWhatCantBe) {
  EXPECT_THROW(Adam(1, {.beta1 = 1.0}), UserError);
  EXPECT_THROW(Adam(1, {.beta2 = -0.1}), UserError);
  EXPECT_THROW(Adam(1, {.epsilon = 0.0}), UserError);
  EXPECT_THROW(Adam(1, {.weight_decay = -1.0}), UserError);
  EXPECT_THROW(Adam(1, {.max_norm = std::nan("")}), UserError);
  Adam adam(2);
  FloatBuffer two(2);
  FloatBuffer three(3);
  EXPECT_THROW(adam.Step(two, three, 0.1), InvariantError);
  EXPECT_THROW(adam.Step(three, two, 0.1), InvariantError);
  EXPECT_THROW(adam.Step(two, two, 0.1, three, 0.1), InvariantError);
  EXPECT_THROW(adam.set_step_count(-1), InvariantError);
  EXPECT_THROW(PolyakUpdate(two, three, 0.1), InvariantError);
}

}  // namespace
}  // namespace msrl
