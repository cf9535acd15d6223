#include "msrl/nn/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "msrl/testing/allocation_counter.h"

namespace msrl {
namespace {

TEST(FillNormalTest, HasTheMomentsAndTheDistribution) {
  Rng rng(1, "normal");
  constexpr int kCount = 400'003;
  std::vector<float> x(kCount);
  FillNormal(rng, x);
  double moments[5] = {};
  double pairs = 0.0;
  int below[3] = {};
  for (int i = 0; i < kCount; ++i) {
    double power = 1.0;
    for (double& moment : moments) {
      moment += power / kCount;
      power *= x[i];
    }
    if (i >= 8) pairs += static_cast<double>(x[i]) * x[i - 8] / kCount;
    below[0] += x[i] < -2.0F;
    below[1] += x[i] < -0.5F;
    below[2] += x[i] < 1.0F;
  }
  EXPECT_NEAR(moments[1], 0.0, 0.008);
  EXPECT_NEAR(moments[2], 1.0, 0.012);
  EXPECT_NEAR(moments[3], 0.0, 0.03);
  EXPECT_NEAR(moments[4], 3.0, 0.08);
  EXPECT_NEAR(pairs, 0.0, 0.008);  // sine and cosine of one angle
  EXPECT_NEAR(below[0] / double{kCount}, 0.02275, 0.0012);
  EXPECT_NEAR(below[1] / double{kCount}, 0.30854, 0.0035);
  EXPECT_NEAR(below[2] / double{kCount}, 0.84134, 0.003);
}

TEST(FillNormalTest, IsRepeatableAndAllocatesNothing) {
  std::vector<float> x(300);
  std::vector<float> y(300);
  std::vector<float> z(300);
  Rng rng(1, "normal");
  const std::int64_t before = testing::AllocationCount();
  FillNormal(rng, x);
  EXPECT_EQ(testing::AllocationCount(), before);
  FillNormal(rng, z);
  Rng again(1, "normal");
  FillNormal(again, y);
  EXPECT_EQ(x, y);
  EXPECT_NE(x, z);
  EXPECT_EQ(again.state().position, 304U);
}

}  // namespace
}  // namespace msrl
