#include "msrl/files/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

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
  constexpr std::uint64_t kLeft = std::uint64_t{64} << 20;  // for what asking takes, and sanitizers
  std::uint64_t pages = 0;
  ASSERT_TRUE(std::ifstream("/proc/self/statm") >> pages);
  struct rlimit old {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &old), 0);
  struct rlimit tight = old;
  tight.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + kLeft;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &tight), 0);
  const std::uint64_t available = AvailableMemory();
  ASSERT_EQ(setrlimit(RLIMIT_AS, &old), 0);
  EXPECT_GT(AvailableMemory(), 2 * kLeft);
  EXPECT_LE(available, kLeft);
  EXPECT_GT(available, kLeft / 2);
}

}  // namespace
}  // namespace msrl
