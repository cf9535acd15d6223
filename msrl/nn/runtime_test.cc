#include "msrl/nn/runtime.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace {
int openblas_threads = 0;
int omp_threads = 0;
}  // namespace

// What UseOneThread() looks for: this program is linked with neither library.
extern "C" void openblas_set_num_threads(int threads) { openblas_threads = threads; }
extern "C" void omp_set_num_threads(int threads) { omp_threads = threads; }

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
    { const internal::FlushDenormals nested; }
    return QuarterOfTheSmallest();
  };
  EXPECT_EQ(inside(), 0.0F);
  EXPECT_GT(QuarterOfTheSmallest(), 0.0F);
  float in_thread = 1.0F;
  std::thread([&] { in_thread = inside(); }).join();
  EXPECT_EQ(in_thread, 0.0F);
#endif
  EXPECT_GT(QuarterOfTheSmallest(), 0.0F);
}

TEST(RuntimeTest, LibrariesAreToldToUseOneThread) {
  openblas_threads = omp_threads = 4;
  UseOneThread();
  EXPECT_EQ(openblas_threads, 1);
  EXPECT_EQ(omp_threads, 1);
}

}  // namespace
}  // namespace msrl
