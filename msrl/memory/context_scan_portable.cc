// The scan for any processor, and the choice between them.
#include "msrl/memory/context_scan_body.h"

namespace msrl::internal {

const ScanKernel& PortableScan() {
  static constexpr ScanKernel kKernel{"portable", NextWithin};
  return kKernel;
}

const ScanKernel& ActiveScan() {
  static const ScanKernel& kernel = Avx2Scan() == nullptr ? PortableScan() : *Avx2Scan();
  return kernel;
}

}  // namespace msrl::internal
