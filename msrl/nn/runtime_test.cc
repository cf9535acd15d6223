#include "msrl/nn/runtime.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace msrl {
namespace {

// Not folded by the compiler.
float QuarterOfTheSmallest() {
  volatile float smallest = std::numeric_limits<float>::min();
  return smallest / 4.0F;
}

TEST(RuntimeTest, DenormalsAreZeroInScopeOnly) {
  EXPECT_GT(QuarterOfTheSmallest(), 0.0F);
#if defined(__x86_64__)
  const auto inside = [] {
    const internal::FlushDenormals flush;
    const internal::FlushDenormals nested;
    return QuarterOfTheSmallest();
  };
  EXPECT_EQ(inside(), 0.0F);
  float in_thread = 1.0F;
  std::thread([&] { in_thread = inside(); }).join();
  EXPECT_EQ(in_thread, 0.0F);
#endif
  EXPECT_GT(QuarterOfTheSmallest(), 0.0F);
}

TEST(RuntimeTest, OneThreadNeedsNoLibrary) { EXPECT_NO_THROW(UseOneThread()); }

}  // namespace
}  // namespace msrl
