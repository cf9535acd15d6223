#include "msrl/nn/runtime.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

// present only if the program is linked with these libraries
extern "C" {
void openblas_set_num_threads(int threads) __attribute__((weak));
void omp_set_num_threads(int threads) __attribute__((weak));
}

namespace msrl {

void UseOneThread() {
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
  if (omp_set_num_threads != nullptr) omp_set_num_threads(1);
}

namespace internal {

#if defined(__SSE2__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(saved_); }
#else
FlushDenormals::FlushDenormals() = default;
FlushDenormals::~FlushDenormals() = default;
#endif

}  // namespace internal
}  // namespace msrl
