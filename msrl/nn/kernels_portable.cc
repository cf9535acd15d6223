// The kernels for any processor, and the choice between them.
#include "msrl/nn/graph_kernels_body.h"

namespace msrl::internal {

const Kernels& PortableKernels() {
  static constexpr Kernels kKernels = MakeKernels("portable");
  return kKernels;
}

const Kernels& ActiveKernels() {
  static const Kernels& kernels = Avx512Kernels() != nullptr ? *Avx512Kernels()
                                  : Avx2Kernels() != nullptr ? *Avx2Kernels()
                                                             : PortableKernels();
  return kernels;
}

}  // namespace msrl::internal
