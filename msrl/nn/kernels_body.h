// The kernels, written once in terms of Vec and Wide. Each kernel file includes this and so
// compiles it for its processor; all names are local to the file.
#ifndef MSRL_NN_KERNELS_BODY_H_
#define MSRL_NN_KERNELS_BODY_H_

#include "msrl/nn/kernels.h"
#include "msrl/nn/vec.h"

namespace msrl::internal {
namespace {

// ---- matrix products ----
//
// A panel of 2 vectors of rows of A is packed (it then fits the first-level cache), and tiles of
// 2 vectors x kTileColumns columns of C are summed in registers. B is read where it is.

constexpr int kPanelRows = 2 * kWideLanes;
constexpr int kTileColumns = kWideLanes == 16 ? 12 : 6;  // as many as 32 or 16 registers hold
constexpr int kDepth = 256;                              // rows of B per pass
constexpr int kThinRows = 4;

struct TileArgs {
  const float* a;  // depth columns of kPanelRows values, a_col apart
  Stride a_col;
  const float* b;
  Stride b_row, b_col;
  float* c;
  Stride c_row, c_col;
  const float* bias;  // used if `fresh`
  const float* gate;
  int rows;  // of C, at most kPanelRows
  int depth;
  bool fresh;  // start from the bias, not from C
  Epilogue epilogue;
};

template <int kVecs>
inline void LoadColumn(const float* p, Stride stride, int rows, Wide* column) {
  for (int v = 0; v < kVecs; ++v) {
    const int left = rows - v * kWideLanes;
    if (stride == 1) {
      column[v] = left >= kWideLanes ? WideLoad(p + v * kWideLanes)
                                     : WideLoadFirst(p + v * kWideLanes, left);
    } else {
      Wide value{};
      for (int i = 0; i < kWideLanes && i < left; ++i) value[i] = p[(v * kWideLanes + i) * stride];
      column[v] = value;
    }
  }
}

template <int kVecs>
inline void StoreColumn(float* p, Stride stride, int rows, const Wide* column) {
  for (int v = 0; v < kVecs; ++v) {
    const int left = rows - v * kWideLanes;
    if (stride != 1) {
      for (int i = 0; i < kWideLanes && i < left; ++i)
        p[(v * kWideLanes + i) * stride] = column[v][i];
    } else if (left >= kWideLanes) {
      WideStore(p + v * kWideLanes, column[v]);
    } else {
      WideStoreFirst(p + v * kWideLanes, column[v], left);
    }
  }
}

template <int kVecs, int kColumns>
void Tile(const TileArgs& t) {
  Wide sum[kColumns][kVecs];
  if (t.fresh) {
    Wide start[kVecs] = {};
    if (t.bias != nullptr) LoadColumn<kVecs>(t.bias, 1, t.rows, start);
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) {
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[j][v] = start[v];
    }
  } else {
    for (int j = 0; j < kColumns; ++j) {
      LoadColumn<kVecs>(t.c + j * t.c_col, t.c_row, t.rows, sum[j]);
    }
  }

  const float* a = t.a;
  const float* b = t.b;
  const Stride b_col = t.b_col;
  for (int p = 0; p < t.depth; ++p) {
    Wide column[kVecs];
#pragma GCC unroll 16
    for (int v = 0; v < kVecs; ++v) column[v] = WideLoad(a + v * kWideLanes);
#pragma GCC unroll 16
    for (int j = 0; j < kColumns; ++j) {
      const Wide value = WideSplat(b[j * b_col]);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[j][v] = Fma(column[v], value, sum[j][v]);
    }
    a += t.a_col;
    b += t.b_row;
  }

#pragma GCC unroll 16
  for (int j = 0; j < kColumns; ++j) {
    if (t.epilogue == Epilogue::kRelu) {
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[j][v] = WideGate(sum[j][v], sum[j][v]);
    } else if (t.epilogue == Epilogue::kReluGate) {
      Wide gate[kVecs];
      LoadColumn<kVecs>(t.gate + j * t.c_col, t.c_row, t.rows, gate);
#pragma GCC unroll 16
      for (int v = 0; v < kVecs; ++v) sum[j][v] = WideGate(gate[v], sum[j][v]);
    }
    StoreColumn<kVecs>(t.c + j * t.c_col, t.c_row, t.rows, sum[j]);
  }
}

template <int kVecs, int kColumns = kTileColumns>
void TileOf(const TileArgs& t, int columns) {
  if constexpr (kColumns > 1) {
    if (columns < kColumns) return TileOf<kVecs, kColumns - 1>(t, columns);
  }
  Tile<kVecs, kColumns>(t);
}

#if defined(__AVX2__) && defined(__FMA__)
// Eight rows of eight, `stride` apart, to eight columns of a panel.
inline void TransposeToPanel(const float* rows, Stride stride, float* panel) {
  __m256 r[8];
  __m256 t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(rows + i * stride);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_store_ps(panel + i * kPanelRows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_store_ps(panel + (i + 4) * kPanelRows, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}
#else
inline void TransposeToPanel(const float* rows, Stride stride, float* panel) {
  for (int i = 0; i < kLanes; ++i) {
    for (int p = 0; p < kLanes; ++p) panel[p * kPanelRows + i] = rows[i * stride + p];
  }
}
#endif

// `rows` rows and `depth` columns of A to a panel, zeros below; sums of the rows if asked for.
void Pack(const float* a, Stride a_row, Stride a_col, int rows, int depth, float* panel,
          float* row_sum, bool fresh) {
  if (a_row == 1) {
    Wide sum[2] = {};
    if (rows == kPanelRows) {
      for (int p = 0; p < depth; ++p) {
        for (int v = 0; v < 2; ++v) {
          const Wide value = WideLoad(a + p * a_col + v * kWideLanes);
          sum[v] += value;
          WideStore(panel + p * kPanelRows + v * kWideLanes, value);
        }
      }
    } else {
      for (int p = 0; p < depth; ++p) {
        Wide column[2] = {};
        if (rows > kWideLanes) {
          LoadColumn<2>(a + p * a_col, 1, rows, column);
        } else {
          LoadColumn<1>(a + p * a_col, 1, rows, column);
        }
        for (int v = 0; v < 2; ++v) {
          sum[v] += column[v];
          WideStore(panel + p * kPanelRows + v * kWideLanes, column[v]);
        }
      }
    }
    if (row_sum != nullptr) {
      for (int i = 0; i < rows; ++i) {
        row_sum[i] = (fresh ? 0.0F : row_sum[i]) + sum[i / kWideLanes][i % kWideLanes];
      }
    }
    return;
  }
  int packed = 0;
  if (a_col == 1 && rows == kPanelRows) {
    for (; packed + kLanes <= depth; packed += kLanes) {
      for (int i = 0; i < kPanelRows; i += kLanes) {
        TransposeToPanel(a + i * a_row + packed, a_row, panel + packed * kPanelRows + i);
      }
    }
  }
  for (int p = packed; p < depth; ++p) {
    for (int i = 0; i < kPanelRows; ++i) {
      panel[p * kPanelRows + i] = i < rows ? a[i * a_row + p * a_col] : 0.0F;
    }
  }
  if (row_sum != nullptr) {
    for (int i = 0; i < rows; ++i) {
      float sum = fresh ? 0.0F : row_sum[i];
      for (int p = 0; p < depth; ++p) sum += panel[p * kPanelRows + i];
      row_sum[i] = sum;
    }
  }
}

void GemmPanels(const GemmArgs& g) {
  alignas(64) float panel[kPanelRows * kDepth];
  for (int k0 = 0; k0 < g.k; k0 += kDepth) {
    const int depth = g.k - k0 < kDepth ? g.k - k0 : kDepth;
    const bool last = k0 + depth == g.k;
    for (int i0 = 0; i0 < g.m; i0 += kPanelRows) {
      TileArgs t;
      t.rows = g.m - i0 < kPanelRows ? g.m - i0 : kPanelRows;
      t.depth = depth;
      t.a = g.a + i0 * g.a_row + k0 * g.a_col;
      t.a_col = g.a_col;
      // a panel that is used once is not worth packing
      if (t.rows < kPanelRows || g.a_row != 1 || g.n > kTileColumns || g.row_sum != nullptr) {
        Pack(t.a, g.a_row, g.a_col, t.rows, depth, panel,
             g.row_sum == nullptr ? nullptr : g.row_sum + i0, k0 == 0);
        t.a = panel;
        t.a_col = kPanelRows;
      }
      t.b_row = g.b_row;
      t.b_col = g.b_col;
      t.c_row = g.c_row;
      t.c_col = g.c_col;
      t.bias = g.bias == nullptr ? nullptr : g.bias + i0;
      t.fresh = k0 == 0 && !g.accumulate;
      t.epilogue = last ? g.epilogue : Epilogue::kNone;
      for (int j0 = 0; j0 < g.n; j0 += kTileColumns) {
        const int columns = g.n - j0 < kTileColumns ? g.n - j0 : kTileColumns;
        t.b = g.b + k0 * g.b_row + j0 * g.b_col;
        t.c = g.c + i0 * g.c_row + j0 * g.c_col;
        t.gate = g.gate == nullptr ? nullptr : g.gate + i0 * g.c_row + j0 * g.c_col;
        if (t.rows > kWideLanes) {
          TileOf<2>(t, columns);
        } else {
          TileOf<1>(t, columns);
        }
      }
    }
  }
}

// One column, a single sample: several vectors of rows at once, not packed.
void GemmColumn(GemmArgs g) {
  constexpr int kVecs = kWideLanes == 16 ? 4 : 8;
  constexpr int kRows = kVecs * kWideLanes;
  for (; g.m >= kRows; g.m -= kRows) {
    Tile<kVecs, 1>({g.a, g.a_col, g.b, g.b_row, 0, g.c, 1, 0, g.bias, g.gate, kRows, g.k,
                    !g.accumulate, g.epilogue});
    g.a += kRows;
    g.c += kRows;
    if (g.bias != nullptr) g.bias += kRows;
    if (g.gate != nullptr) g.gate += kRows;
  }
  if (g.m > 0) GemmPanels(g);
}

// Few rows: dot products along the columns of B.
void GemmDots(const GemmArgs& g) {
  alignas(64) float row[kDepth];
  for (int k0 = 0; k0 < g.k; k0 += kDepth) {
    const int depth = g.k - k0 < kDepth ? g.k - k0 : kDepth;
    for (int i = 0; i < g.m; ++i) {
      for (int p = 0; p < depth; ++p) row[p] = g.a[i * g.a_row + (k0 + p) * g.a_col];
      const bool fresh = k0 == 0 && !g.accumulate;
      const float bias = g.bias == nullptr ? 0.0F : g.bias[i];
      for (int j0 = 0; j0 < g.n; j0 += 4) {
        const int columns = g.n - j0 < 4 ? g.n - j0 : 4;
        const float* b[4];
        for (int j = 0; j < 4; ++j) b[j] = g.b + k0 + (j0 + (j < columns ? j : 0)) * g.b_col;
        Vec sum[4] = {};
        int p = 0;
        for (; p + kLanes <= depth; p += kLanes) {
          const Vec value = Load(row + p);
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) sum[j] = Fma(value, Load(b[j] + p), sum[j]);
        }
        for (int j = 0; j < columns; ++j) {
          float total = Sum(sum[j]);
          for (int q = p; q < depth; ++q) total += row[q] * b[j][q];
          float* c = g.c + i * g.c_row + (j0 + j) * g.c_col;
          *c = (fresh ? bias : *c) + total;
        }
      }
    }
  }
}

void Gemm(const GemmArgs& g) {
  const bool plain = g.epilogue == Epilogue::kNone;
  if (g.n == 1 && g.m > kThinRows && g.a_row == 1 && g.c_row == 1 && g.row_sum == nullptr) {
    return GemmColumn(g);
  }
  if (g.m > kThinRows || !plain) return GemmPanels(g);
  if (g.b_row == 1 && g.row_sum == nullptr) return GemmDots(g);
  if (g.b_col != 1 || g.bias != nullptr || g.n <= kThinRows) return GemmPanels(g);
  // few rows, but many columns that lie next to each other: the transposed product
  if (g.row_sum != nullptr) {
    for (int i = 0; i < g.m; ++i) {
      float sum = 0.0F;
      for (int p = 0; p < g.k; ++p) sum += g.a[i * g.a_row + p * g.a_col];
      g.row_sum[i] = sum;
    }
  }
  GemmArgs t = g;
  t.m = g.n;
  t.n = g.m;
  t.a = g.b;
  t.a_row = g.b_col;
  t.a_col = g.b_row;
  t.b = g.a;
  t.b_row = g.a_col;
  t.b_col = g.a_row;
  t.c_row = g.c_col;
  t.c_col = g.c_row;
  t.row_sum = nullptr;
  GemmPanels(t);
}

// ---- elementwise ----

inline Wide LoadPart(const float* p, int count) {
  return count == kWideLanes ? WideLoad(p) : WideLoadFirst(p, count);
}
inline void StorePart(float* p, Wide v, int count) {
  if (count == kWideLanes) {
    WideStore(p, v);
  } else {
    WideStoreFirst(p, v, count);
  }
}

// f(i, count) for all parts of n values: from the i-th on, at most kWideLanes.
template <typename F>
inline void ForParts(std::size_t n, const F& f) {
  std::size_t i = 0;
  for (; i + kWideLanes <= n; i += kWideLanes) f(i, kWideLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}

// y = f(x) over n values
template <typename F>
inline void Map(const float* x, float* y, std::size_t n, const F& f) {
  ForParts(n,
           [=](std::size_t i, int count) { StorePart(y + i, f(LoadPart(x + i, count)), count); });
}

// y = f(x, y)
template <typename F>
inline void Update(const float* x, float* y, std::size_t n, const F& f) {
  ForParts(n, [=](std::size_t i, int count) {
    StorePart(y + i, f(LoadPart(x + i, count), LoadPart(y + i, count)), count);
  });
}

inline Wide Sigmoid(Wide z) { return 1.0F / (1.0F + Exp(-z)); }

// x tanh(softplus(x)); with e = exp(x), tanh(softplus(x)) = n / (n + 2) for n = e (e + 2).
inline Wide Mish(Wide x) {
  const Wide e = Exp(Min(x, WideSplat(20.0F)));
  const Wide n = e * (e + 2.0F);
  return x * n / (n + 2.0F);
}
inline Wide MishSlope(Wide x) {
  const Wide e = Exp(Min(x, WideSplat(20.0F)));
  const Wide n = e * (e + 2.0F);
  const Wide t = n / (n + 2.0F);
  return t + x * (1.0F - t * t) * e / (1.0F + e);
}

void Activate(Activation f, const float* z, float* h, std::size_t n) {
  switch (f) {
    case Activation::kIdentity:
      if (z != h) Map(z, h, n, [](Wide x) { return x; });
      return;
    case Activation::kRelu:
      return Map(z, h, n, [](Wide x) { return Max(x, Wide{}); });
    case Activation::kTanh:
      return Map(z, h, n, [](Wide x) { return Tanh(x); });
    case Activation::kElu:
      return Map(z, h, n, [](Wide x) { return Select(x > 0.0F, x, Exp(x) - 1.0F); });
    case Activation::kSilu:
      return Map(z, h, n, [](Wide x) { return x * Sigmoid(x); });
    case Activation::kMish:
      return Map(z, h, n, [](Wide x) { return Mish(x); });
  }
}

void ActivateBackward(Activation f, const float* x, float* d, std::size_t n) {
  switch (f) {
    case Activation::kIdentity:
      return;
    case Activation::kRelu:
      return Update(x, d, n, [](Wide h, Wide g) { return Select(h > 0.0F, g, Wide{}); });
    case Activation::kTanh:
      return Update(x, d, n, [](Wide h, Wide g) { return g * (1.0F - h * h); });
    case Activation::kElu:
      return Update(x, d, n, [](Wide h, Wide g) { return Select(h > 0.0F, g, g * (h + 1.0F)); });
    case Activation::kSilu:
      return Update(x, d, n, [](Wide z, Wide g) {
        const Wide s = Sigmoid(z);
        return g * s * (1.0F + z * (1.0F - s));
      });
    case Activation::kMish:
      return Update(x, d, n, [](Wide z, Wide g) { return g * MishSlope(z); });
  }
}

void ExpAll(const float* x, float* y, std::size_t n) {
  Map(x, y, n, [](Wide v) { return Exp(v); });
}
void LogAll(const float* x, float* y, std::size_t n) {
  Map(x, y, n, [](Wide v) { return Log(v); });
}
void TanhAll(const float* x, float* y, std::size_t n) {
  Map(x, y, n, [](Wide v) { return Tanh(v); });
}

void Polyak(float* target, const float* source, float tau, std::size_t n) {
  const Wide rate = WideSplat(tau);
  Update(source, target, n, [rate](Wide s, Wide t) { return Fma(rate, s - t, t); });
}

double SumOfSquares(const float* x, std::size_t n) {
  double total = 0.0;
  // short float sums into a double: accurate and fast
  constexpr std::size_t kBlock = 1024;
  for (std::size_t start = 0; start < n; start += kBlock) {
    const std::size_t size = n - start < kBlock ? n - start : kBlock;
    Vec sum[4] = {};
    std::size_t i = 0;
    for (; i + 4 * kLanes <= size; i += 4 * kLanes) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const Vec value = Load(x + start + i + v * kLanes);
        sum[v] = Fma(value, value, sum[v]);
      }
    }
    double rest = 0.0;
    for (; i < size; ++i) rest += static_cast<double>(x[start + i]) * x[start + i];
    total += static_cast<double>(Sum((sum[0] + sum[1]) + (sum[2] + sum[3]))) + rest;
  }
  return total;
}

struct AdamPart {
  Wide p, m, v;
};

inline AdamPart AdamStep(const AdamArgs& a, AdamPart s, Wide g) {
  g *= a.gradient_scale;
  s.m = Fma(WideSplat(a.one_minus_beta1), g - s.m, s.m);
  s.v = Fma(WideSplat(a.one_minus_beta2), Fma(g, g, -s.v), s.v);
  const Wide root = Fma(Sqrt(s.v), WideSplat(a.root_scale), WideSplat(a.epsilon));
  s.p = Fma(s.p, WideSplat(a.decay), -(a.step * s.m / root));
  return s;
}

inline AdamPart LaPropStep(const LaPropArgs& a, AdamPart s, Wide g) {
  g *= a.gradient_scale;
  s.v = Fma(WideSplat(a.one_minus_beta2), Fma(g, g, -s.v), s.v);
  const Wide root = Fma(Sqrt(s.v), WideSplat(a.root_scale), WideSplat(a.epsilon));
  const Wide u = Select(s.v > 0.0F, g / root, g - g);  // not zero for what is no number
  s.m = Fma(WideSplat(a.one_minus_beta1), u - s.m, s.m);
  s.p = Fma(WideSplat(-a.step), s.m, s.p);
  return s;
}

// parameter, mean, variance = step(parameter, mean, variance; gradient)
template <typename Args, typename F>
inline AdamPart StepPart(const Args& a, std::size_t i, int count, const F& step) {
  const AdamPart s = step(a,
                          {LoadPart(a.parameter + i, count), LoadPart(a.mean + i, count),
                           LoadPart(a.variance + i, count)},
                          LoadPart(a.gradient + i, count));
  StorePart(a.parameter + i, s.p, count);
  StorePart(a.mean + i, s.m, count);
  StorePart(a.variance + i, s.v, count);
  return s;
}

void Adam(const AdamArgs& a) {
  ForParts(a.n, [&a](std::size_t i, int count) {
    const AdamPart s = StepPart(a, i, count, AdamStep);
    if (a.target == nullptr) return;
    const Wide t = LoadPart(a.target + i, count);
    StorePart(a.target + i, Fma(WideSplat(a.tau), s.p - t, t), count);
  });
}

void LaProp(const LaPropArgs& a) {
  ForParts(a.n, [&a](std::size_t i, int count) { StepPart(a, i, count, LaPropStep); });
}

// Box-Muller: eight words make the radii, eight the angles.
void Normals(const std::uint32_t* words, float* out, std::size_t blocks) {
  for (std::size_t block = 0; block < blocks; ++block, words += 16, out += 16) {
    for (int i = 0; i < 8; i += kLanes) {
      IntVec radius_bits;
      IntVec angle_bits;
      __builtin_memcpy(&radius_bits, words + i, sizeof radius_bits);
      __builtin_memcpy(&angle_bits, words + 8 + i, sizeof angle_bits);
      // 31 bits to (0, 1], 32 bits to [-1, 1]
      const Vec count = __builtin_convertvector((radius_bits >> 1) & 0x7fffffff, Vec);
      const Vec radius = Sqrt(Max(-2.0F * Log((count + 0.5F) * 0x1p-31F), Vec{}));
      Vec sin;
      Vec cos;
      SinCosPi(__builtin_convertvector(angle_bits, Vec) * 0x1p-31F, &sin, &cos);
      Store(out + i, radius * cos);
      Store(out + 8 + i, radius * sin);
    }
  }
}

}  // namespace
}  // namespace msrl::internal

#endif  // MSRL_NN_KERNELS_BODY_H_
