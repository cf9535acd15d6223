// The loop of context_scan.h for the instructions that the including file is compiled for. Included
// by two files only; all names are local to the file.
#ifndef MSRL_MEMORY_CONTEXT_SCAN_BODY_H_
#define MSRL_MEMORY_CONTEXT_SCAN_BODY_H_

#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "msrl/memory/context_scan.h"

namespace msrl::internal {
namespace {

#if defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kParts = kScanBlock / kLanes;
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t IntVec __attribute__((vector_size(4 * kLanes)));

inline bool Any(IntVec mask) {
#if defined(__AVX2__)
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
#elif defined(__SSE2__)
  return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0;
#else
  std::int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= mask[i];
  return any != 0;
#endif
}

std::int64_t NextWithin(const float* blocks, std::int64_t begin, std::int64_t end, int size,
                        const float* query, float bound, float* squared) {
  const float* next = blocks + begin * size * kScanBlock;
  for (std::int64_t block = begin; block < end; ++block) {
    Vec sum[kParts] = {};
    for (int i = 0; i < size; ++i, next += kScanBlock) {
      for (int part = 0; part < kParts; ++part) {
        Vec x;
        __builtin_memcpy(&x, next + part * kLanes, sizeof x);
        const Vec difference = x - query[i];
        sum[part] += difference * difference;
      }
    }
    IntVec within{};
    for (const Vec& part : sum) within |= part <= bound;
    if (Any(within)) {
      __builtin_memcpy(squared, sum, sizeof sum);
      return block;
    }
  }
  return end;
}

}  // namespace
}  // namespace msrl::internal

#endif  // MSRL_MEMORY_CONTEXT_SCAN_BODY_H_
