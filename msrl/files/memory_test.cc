#include "msrl/files/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "msrl/testing/user_error.h"

namespace msrl {
namespace {

using ::msrl::testing::UserErrorText;

TEST(Memory, WhatFitsIsAccepted) {
  EXPECT_GT(AvailableMemory(), std::uint64_t{1} << 24);
  RequireMemory(0, "nothing");
  RequireMemory(std::uint64_t{1} << 25, "little");
}

TEST(Memory, WhatDoesNotFitIsNamedWithBothFigures) {
  const std::string text =
      UserErrorText([] { RequireMemory(std::uint64_t{1} << 62, "the replay"); });
  EXPECT_EQ(text.find("the replay needs 4611686018.4 GB of memory, "), 0U) << text;
  EXPECT_NE(text.find(" are available"), std::string::npos) << text;
  EXPECT_THROW(RequireMemory(UINT64_MAX, "it"), MemoryError);
}

TEST(Memory, TheLimitOfTheProcessCounts) {
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old), 0);
  struct rlimit tight = old;
  tight.rlim_cur = 1;  // less than there is already
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const std::uint64_t available = AvailableMemory();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &old), 0);
  EXPECT_EQ(available, 0U);
}

}  // namespace
}  // namespace msrl
