// The kernels for processors with AVX2 and FMA; the build sets the flags for this file only. It
// includes nothing that other files could share compiled code with.
#include "msrl/nn/graph_kernels_body.h"

namespace msrl::internal {

const Kernels* Avx2Kernels() {
#if defined(__AVX2__) && defined(__FMA__)
  static constexpr Kernels kKernels = MakeKernels("avx2");
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return supported ? &kKernels : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace msrl::internal
