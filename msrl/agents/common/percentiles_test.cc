#include "msrl/agents/common/percentiles.h"

#include <gtest/gtest.h>

#include <vector>

#include "msrl/core/check.h"
#include "msrl/testing/tolerance.h"

namespace msrl {
namespace {

using testing::Tol;

TEST(PercentilesTest, LinearBetweenNeighbours) {
  std::vector<float> values{4.0F, -1.0F, 2.0F, 10.0F, 3.0F};
  EXPECT_EQ(Quantile(values, 0.0), -1.0F);
  EXPECT_EQ(Quantile(values, 0.5), 3.0F);
  EXPECT_EQ(Quantile(values, 1.0), 10.0F);
  EXPECT_NEAR(Quantile(values, 0.05), -0.4F, Tol(1e-6));
  EXPECT_NEAR(Quantile(values, 0.95), 8.8F, Tol(1e-6));
  std::vector<float> one{7.0F};
  EXPECT_EQ(Quantile(one, 0.95), 7.0F);
  EXPECT_THROW(Quantile({}, 0.5), InvariantError);
  EXPECT_THROW(Quantile(one, 1.5), InvariantError);
}

}  // namespace
}  // namespace msrl
