#include "msrl/core/check.h"

#include <gtest/gtest.h>

namespace msrl {
namespace {

TEST(Check, PassesQuietly) {
  MSRL_CHECK(true);
  MSRL_CHECK_EQ(2, 2);
  MSRL_CHECK_LE(1, 2);
}

TEST(Check, ShowsConditionPlaceAndValues) {
  const int left = 3;
  try {
    MSRL_CHECK_LT(left, 2);
    FAIL() << "no error";
  } catch (const InvariantError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("check_test.cc"), std::string::npos) << text;
    EXPECT_NE(text.find("left is 3, right is 2"), std::string::npos) << text;
  }
}

TEST(Check, AppendsTheMessage) {
  try {
    MSRL_CHECK(false, "step ", 7);
    FAIL() << "no error";
  } catch (const InvariantError& error) {
    EXPECT_NE(std::string(error.what()).find("false: step 7"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace msrl
