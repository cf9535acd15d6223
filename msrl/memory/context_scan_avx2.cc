// The scan for processors with AVX2; the build sets the flag for this file only.
#include "msrl/memory/context_scan_body.h"

namespace msrl::internal {

const ScanKernel* Avx2Scan() {
#if defined(__AVX2__)
  static constexpr ScanKernel kKernel{"avx2", NextWithin};
  static const bool supported = __builtin_cpu_supports("avx2");
  return supported ? &kKernel : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace msrl::internal
