#include "msrl/core/packed_kernels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#define MSRL_X86 1
#else
#define MSRL_X86 0
#endif

namespace msrl::internal {
namespace {

// Four doubles at any address. GCC and clang lower it to whatever the target has.
typedef double Vec4 __attribute__((vector_size(32), aligned(8), may_alias));

constexpr Index kLanes = 4;

#if MSRL_X86
bool HasAvx2Fma() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}
#endif

// ---- one step ----

// Four columns at a time share the loads of psi; above the 4x4 triangle on the diagonal every
// column has a multiple of four rows.
__attribute__((always_inline)) inline void Rank1Body(const double* __restrict psi, Index m,
                                                     double* __restrict packed) {
  const Index blocked = m / kLanes * kLanes;
  for (Index j = 0; j < blocked; j += kLanes) {
    double* c0 = packed + PackedIndex(0, j);
    double* c1 = c0 + (j + 1);
    double* c2 = c1 + (j + 2);
    double* c3 = c2 + (j + 3);
    const double p0 = psi[j];
    const double p1 = psi[j + 1];
    const double p2 = psi[j + 2];
    const double p3 = psi[j + 3];
    for (Index i = 0; i < j; i += kLanes) {
      const Vec4 rows = *reinterpret_cast<const Vec4*>(psi + i);
      *reinterpret_cast<Vec4*>(c0 + i) += rows * p0;
      *reinterpret_cast<Vec4*>(c1 + i) += rows * p1;
      *reinterpret_cast<Vec4*>(c2 + i) += rows * p2;
      *reinterpret_cast<Vec4*>(c3 + i) += rows * p3;
    }
    c0[j] += p0 * p0;
    c1[j] += p0 * p1;
    c1[j + 1] += p1 * p1;
    c2[j] += p0 * p2;
    c2[j + 1] += p1 * p2;
    c2[j + 2] += p2 * p2;
    c3[j] += p0 * p3;
    c3[j + 1] += p1 * p3;
    c3[j + 2] += p2 * p3;
    c3[j + 3] += p3 * p3;
  }
  for (Index j = blocked; j < m; ++j) {
    double* column = packed + PackedIndex(0, j);
    for (Index i = 0; i <= j; ++i) column[i] += psi[i] * psi[j];
  }
}

#if MSRL_X86
// without fma on purpose: the same bits as on machines that lack it
__attribute__((target("avx2"))) void Rank1Avx2(const double* psi, Index m, double* packed) {
  Rank1Body(psi, m, packed);
}
#endif

void Rank1Portable(const double* psi, Index m, double* packed) { Rank1Body(psi, m, packed); }

// ---- many steps ----

// Steps per block: three row panels and one column panel of it stay in a 32 kB first-level cache.
constexpr Index kBlockSteps = 192;
constexpr Index kMaxPanels = 3;
// Below this many steps packing costs more than it gains.
constexpr Index kFewSteps = 8;

// tile (4 columns of 4*P rows) = sum over steps of A_t B_t^T; A is P consecutive panels, B one.
// A panel holds four rows of Psi, step by step.
template <int P>
void TilePortable(const double* a, const double* b, Index steps, double* tile) {
  Vec4 sum[P][kLanes] = {};
  const Index panel = kLanes * steps;
  for (Index t = 0; t < steps; ++t) {
    for (int p = 0; p < P; ++p) {
      const Vec4 rows = *reinterpret_cast<const Vec4*>(a + p * panel + t * kLanes);
      for (int c = 0; c < kLanes; ++c) sum[p][c] += rows * b[t * kLanes + c];
    }
  }
  for (int c = 0; c < kLanes; ++c) {
    for (int p = 0; p < P; ++p) {
      *reinterpret_cast<Vec4*>(tile + (c * P + p) * kLanes) = sum[p][c];
    }
  }
}

#if MSRL_X86
// Unrolled, so that the sums stay in registers: indexed in a loop they would live in memory.
template <int P>
__attribute__((target("avx2,fma"))) void TileAvx2(const double* a, const double* b, Index steps,
                                                  double* tile) {
  __m256d sum[P][kLanes];
#pragma GCC unroll 4
  for (int c = 0; c < kLanes; ++c) {
#pragma GCC unroll 3
    for (int p = 0; p < P; ++p) sum[p][c] = _mm256_setzero_pd();
  }
  const Index panel = kLanes * steps;
  for (Index t = 0; t < steps; ++t) {
    __m256d rows[P];
#pragma GCC unroll 3
    for (int p = 0; p < P; ++p) rows[p] = _mm256_loadu_pd(a + p * panel + t * kLanes);
#pragma GCC unroll 4
    for (int c = 0; c < kLanes; ++c) {
      const __m256d column = _mm256_broadcast_sd(b + t * kLanes + c);
#pragma GCC unroll 3
      for (int p = 0; p < P; ++p) sum[p][c] = _mm256_fmadd_pd(rows[p], column, sum[p][c]);
    }
  }
#pragma GCC unroll 4
  for (int c = 0; c < kLanes; ++c) {
#pragma GCC unroll 3
    for (int p = 0; p < P; ++p) _mm256_storeu_pd(tile + (c * P + p) * kLanes, sum[p][c]);
  }
}
#endif

template <int P>
void Tile(const double* a, const double* b, Index steps, double* tile) {
#if MSRL_X86
  if (HasAvx2Fma()) return TileAvx2<P>(a, b, steps, tile);
#endif
  TilePortable<P>(a, b, steps, tile);
}

// Adds the tile with rows from row0 and the four columns from col0 to the packed triangle.
void AddTile(const double* tile, Index rows, Index row0, Index col0, Index m, double* packed) {
  for (Index c = 0; c < kLanes && col0 + c < m; ++c) {
    const Index count = std::min(rows, col0 + c + 1 - row0);
    double* column = packed + PackedIndex(row0, col0 + c);
    for (Index i = 0; i < count; ++i) column[i] += tile[c * rows + i];
  }
}

// Copies `steps` columns of Psi to panels of four rows, the last one padded with zeros.
void PackPanels(const double* psi, Index m, Index steps, Index stride, double* panels) {
  for (Index row = 0; row < m; row += kLanes) {
    double* panel = panels + row * steps;
    const Index rows = std::min(kLanes, m - row);
    for (Index t = 0; t < steps; ++t) {
      for (Index i = 0; i < kLanes; ++i) {
        panel[t * kLanes + i] = i < rows ? psi[t * stride + row + i] : 0.0;
      }
    }
  }
}

}  // namespace

void PackedRank1Update(const double* psi, Index m, double* packed) {
#if MSRL_X86
  if (HasAvx2Fma()) return Rank1Avx2(psi, m, packed);
#endif
  Rank1Portable(psi, m, packed);
}

void PackedSyrk(const double* psi, Index m, Index steps, Index stride, double* packed) {
  if (steps < kFewSteps) {
    for (Index t = 0; t < steps; ++t) PackedRank1Update(psi + t * stride, m, packed);
    return;
  }
  const Index panels = (m + kLanes - 1) / kLanes;
  std::vector<double> buffer(static_cast<std::size_t>(panels * kLanes * kBlockSteps));
  alignas(32) double tile[kMaxPanels * kLanes * kLanes];

  for (Index t0 = 0; t0 < steps; t0 += kBlockSteps) {
    const Index block = std::min(kBlockSteps, steps - t0);
    PackPanels(psi + t0 * stride, m, block, stride, buffer.data());
    const auto panel = [&](Index p) { return buffer.data() + p * kLanes * block; };
    for (Index j = 0; j < panels; ++j) {
      for (Index i = 0; i <= j; i += kMaxPanels) {
        const Index group = std::min(kMaxPanels, j + 1 - i);
        if (group == 3) Tile<3>(panel(i), panel(j), block, tile);
        if (group == 2) Tile<2>(panel(i), panel(j), block, tile);
        if (group == 1) Tile<1>(panel(i), panel(j), block, tile);
        AddTile(tile, group * kLanes, i * kLanes, j * kLanes, m, packed);
      }
    }
  }
}

}  // namespace msrl::internal
