// The kernels for processors with AVX-512; the build sets the flags for this file only. Products
// and elementwise functions are in wider vectors, sums across lanes are those of AVX2: the results
// are the same, bit for bit.
#include "msrl/nn/graph_kernels_body.h"

namespace msrl::internal {

const Kernels* Avx512Kernels() {
#if defined(__AVX512F__)
  static constexpr Kernels kKernels = MakeKernels("avx512");
  static const bool supported =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return supported ? &kKernels : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace msrl::internal
