// Nearest neighbours among contexts by looking at all of them: the inner loop, once per instruction
// set and chosen at run time. All of them give the same bits.
#ifndef MSRL_MEMORY_CONTEXT_SCAN_H_
#define MSRL_MEMORY_CONTEXT_SCAN_H_

#include <cstdint>

namespace msrl::internal {

// Contexts are stored in blocks of so many: first coordinate of all, second coordinate of all, ...
inline constexpr int kScanBlock = 16;

struct ScanKernel {
  const char* name;
  // The first block in {begin, ..., end-1} with a context whose squared distance to the query is at
  // most `bound`; all kScanBlock squared distances of that block go to `squared`. `end` if there is
  // none. A context of NaNs is never within any bound. Squares are summed from the first coordinate
  // to the last.
  std::int64_t (*next_within)(const float* blocks, std::int64_t begin, std::int64_t end, int size,
                              const float* query, float bound, float* squared);
};

const ScanKernel& PortableScan();
// Null if this build or this processor has no AVX2.
const ScanKernel* Avx2Scan();
// The fastest that this processor runs.
const ScanKernel& ActiveScan();

}  // namespace msrl::internal

#endif  // MSRL_MEMORY_CONTEXT_SCAN_H_
