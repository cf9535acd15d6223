// The graph's kernels, written once in terms of Vec and Wide; see kernels_body.h.
#ifndef MSRL_NN_GRAPH_KERNELS_BODY_H_
#define MSRL_NN_GRAPH_KERNELS_BODY_H_

#include "msrl/nn/graph_kernels.h"
#include "msrl/nn/kernels_body.h"
#include "msrl/nn/vec.h"

namespace msrl::internal {
namespace {

inline bool IsFlat(const ConstMatrixView& x) { return x.stride == x.rows || x.columns == 1; }

// One long column if there is nothing between the columns of all of them.
template <typename... Views>
inline void Flatten(Views&... views) {
  if (!(IsFlat(views) && ...)) return;
  ((views.rows *= views.columns, views.columns = 1), ...);
}

inline float First(Vec v) { return v[0]; }

inline Wide Softplus(Wide x) { return Max(x, Wide{}) + Log(1.0F + Exp(-Abs(x))); }
inline Wide Sign(Wide x) {
  return Select(x > 0.0F, WideSplat(1.0F), Select(x < 0.0F, WideSplat(-1.0F), Wide{}));
}

// ---- one operand ----

template <typename F>
inline void MapMatrix(ConstMatrixView x, MatrixView y, const F& f) {
  Flatten(x, y);
  for (int c = 0; c < y.columns; ++c) {
    Map(x.Column(c), y.Column(c), static_cast<std::size_t>(y.rows), f);
  }
}

void UnaryForward(UnaryFunction u, ConstMatrixView x, MatrixView y) {
  const Wide first = WideSplat(u.first);
  const Wide second = WideSplat(u.second);
  switch (u.kind) {
    case Unary::kAffine:
      return MapMatrix(x, y, [=](Wide v) { return Fma(first, v, second); });
    case Unary::kClamp:
      return MapMatrix(x, y, [=](Wide v) { return Min(Max(v, first), second); });
    case Unary::kRelu:
      return MapMatrix(x, y, [](Wide v) { return Max(v, Wide{}); });
    case Unary::kTanh:
      return MapMatrix(x, y, [](Wide v) { return Tanh(v); });
    case Unary::kSigmoid:
      return MapMatrix(x, y, [](Wide v) { return Sigmoid(v); });
    case Unary::kSilu:
      return MapMatrix(x, y, [](Wide v) { return v * Sigmoid(v); });
    case Unary::kElu:
      return MapMatrix(x, y, [](Wide v) { return Select(v > 0.0F, v, Exp(v) - 1.0F); });
    case Unary::kMish:
      return MapMatrix(x, y, [](Wide v) { return Mish(v); });
    case Unary::kSoftplus:
      return MapMatrix(x, y, [](Wide v) { return Softplus(v); });
    case Unary::kExp:
      return MapMatrix(x, y, [](Wide v) { return Exp(v); });
    case Unary::kLog:
      return MapMatrix(x, y, [](Wide v) { return Log(v); });
    case Unary::kSquare:
      return MapMatrix(x, y, [](Wide v) { return v * v; });
    case Unary::kSqrt:
      return MapMatrix(x, y, [](Wide v) { return Sqrt(v); });
    case Unary::kAbs:
      return MapMatrix(x, y, [](Wide v) { return Abs(v); });
    case Unary::kSymlog:
      return MapMatrix(x, y, [](Wide v) { return Sign(v) * Log(1.0F + Abs(v)); });
    case Unary::kSymexp:
      return MapMatrix(x, y, [](Wide v) { return Sign(v) * (Exp(Abs(v)) - 1.0F); });
  }
}

// d_x = or += f(from, d_y)
template <typename F>
inline void BackMatrix(ConstMatrixView from, ConstMatrixView d_y, MatrixView d_x, bool add,
                       const F& f) {
  Flatten(from, d_y, d_x);
  for (int c = 0; c < d_x.columns; ++c) {
    const float* const p = from.Column(c);
    const float* const d = d_y.Column(c);
    float* const out = d_x.Column(c);
    ForParts(static_cast<std::size_t>(d_x.rows), [=](std::size_t k, int count) {
      const Wide value = f(LoadPart(p + k, count), LoadPart(d + k, count));
      StorePart(out + k, add ? LoadPart(out + k, count) + value : value, count);
    });
  }
}

void UnaryBackward(UnaryFunction u, ConstMatrixView x, ConstMatrixView y, ConstMatrixView d_y,
                   MatrixView d_x, bool add) {
  const Wide first = WideSplat(u.first);
  const Wide second = WideSplat(u.second);
  switch (u.kind) {
    case Unary::kAffine:
      return BackMatrix(d_y, d_y, d_x, add, [=](Wide, Wide g) { return first * g; });
    case Unary::kClamp:
      return BackMatrix(x, d_y, d_x, add, [=](Wide v, Wide g) {
        return Select((v >= first) & (v <= second), g, Wide{});
      });
    case Unary::kRelu:
      return BackMatrix(y, d_y, d_x, add,
                        [](Wide h, Wide g) { return Select(h > 0.0F, g, Wide{}); });
    case Unary::kTanh:
      return BackMatrix(y, d_y, d_x, add, [](Wide h, Wide g) { return g * (1.0F - h * h); });
    case Unary::kSigmoid:
      return BackMatrix(y, d_y, d_x, add, [](Wide h, Wide g) { return g * h * (1.0F - h); });
    case Unary::kSilu:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) {
        const Wide s = Sigmoid(v);
        return g * s * (1.0F + v * (1.0F - s));
      });
    case Unary::kElu:
      return BackMatrix(y, d_y, d_x, add,
                        [](Wide h, Wide g) { return Select(h > 0.0F, g, g * (h + 1.0F)); });
    case Unary::kMish:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return g * MishSlope(v); });
    case Unary::kSoftplus:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return g * Sigmoid(v); });
    case Unary::kExp:
      return BackMatrix(y, d_y, d_x, add, [](Wide h, Wide g) { return g * h; });
    case Unary::kLog:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return g / v; });
    case Unary::kSquare:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return 2.0F * v * g; });
    case Unary::kSqrt:
      return BackMatrix(y, d_y, d_x, add, [](Wide h, Wide g) { return g / (h + h); });
    case Unary::kAbs:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return Sign(v) * g; });
    case Unary::kSymlog:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return g / (1.0F + Abs(v)); });
    case Unary::kSymexp:
      return BackMatrix(x, d_y, d_x, add, [](Wide v, Wide g) { return g * Exp(Abs(v)); });
  }
}

// ---- two operands ----

// Columns of an operand that may be repeated.
template <typename View>
struct Operand {
  Operand(const View& v, int rows, int columns)
      : view(v), one_row(v.rows == 1 && rows > 1), one_column(v.columns == 1 && columns > 1) {}
  auto Column(int c) const { return view.Column(one_column ? 0 : c); }
  bool repeated() const { return one_row || one_column; }

  View view;
  bool one_row, one_column;
};

inline Vec LoadOperand(const float* p, int i, bool one_row) {
  return one_row ? Splat(*p) : Load(p + i);
}

template <typename F>
inline void BinaryMap(ConstMatrixView a_view, ConstMatrixView b_view, MatrixView y, const F& f) {
  if (a_view.rows == b_view.rows && a_view.columns == b_view.columns) Flatten(a_view, b_view, y);
  const Operand a(a_view, y.rows, y.columns);
  const Operand b(b_view, y.rows, y.columns);
  for (int c = 0; c < y.columns; ++c) {
    const float* const pa = a.Column(c);
    const float* const pb = b.Column(c);
    float* const out = y.Column(c);
    int i = 0;
    for (; i + kLanes <= y.rows; i += kLanes) {
      Store(out + i, f(LoadOperand(pa, i, a.one_row), LoadOperand(pb, i, b.one_row)));
    }
    for (; i < y.rows; ++i) {
      out[i] = First(f(Splat(pa[a.one_row ? 0 : i]), Splat(pb[b.one_row ? 0 : i])));
    }
  }
}

void BinaryForward(Binary f, ConstMatrixView a, ConstMatrixView b, MatrixView y) {
  switch (f) {
    case Binary::kAdd:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return s + t; });
    case Binary::kSubtract:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return s - t; });
    case Binary::kMultiply:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return s * t; });
    case Binary::kDivide:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return s / t; });
    case Binary::kMin:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return Min(s, t); });
    case Binary::kMax:
      return BinaryMap(a, b, y, [](Vec s, Vec t) { return Max(s, t); });
  }
}

// d_x, a gradient of one operand, from f(x, other, d_y).
template <typename F>
inline void BinaryBack(ConstMatrixView x_view, ConstMatrixView other_view, ConstMatrixView d_y,
                       MatrixView d_view, bool add, const F& f) {
  if (d_view.data == nullptr) return;
  if (x_view.rows == other_view.rows && x_view.columns == other_view.columns) {
    Flatten(x_view, other_view, d_y, d_view);
  }
  const Operand x(x_view, d_y.rows, d_y.columns);
  const Operand other(other_view, d_y.rows, d_y.columns);
  const Operand d_x(d_view, d_y.rows, d_y.columns);
  for (int c = 0; c < d_y.columns; ++c) {
    const float* const p = x.Column(c);
    const float* const q = other.Column(c);
    const float* const d = d_y.Column(c);
    float* const out = d_x.Column(c);
    Vec sum{};
    float rest = 0.0F;
    int i = 0;
    for (; i + kLanes <= d_y.rows; i += kLanes) {
      const Vec value =
          f(LoadOperand(p, i, x.one_row), LoadOperand(q, i, other.one_row), Load(d + i));
      if (d_x.one_row) {
        sum += value;
      } else {
        Store(out + i, add || d_x.one_column ? Load(out + i) + value : value);
      }
    }
    for (; i < d_y.rows; ++i) {
      const float value =
          First(f(Splat(p[x.one_row ? 0 : i]), Splat(q[other.one_row ? 0 : i]), Splat(d[i])));
      if (d_x.one_row) {
        rest += value;
      } else {
        out[i] = add || d_x.one_column ? out[i] + value : value;
      }
    }
    if (d_x.one_row) *out += Sum(sum) + rest;
  }
}

// 1 where s is chosen, 1/2 where the two are equal.
inline Vec Share(IntVec chosen, IntVec equal) {
  return Select(chosen, Splat(1.0F), Select(equal, Splat(0.5F), Vec{}));
}

void BinaryBackward(Binary f, ConstMatrixView a, ConstMatrixView b, ConstMatrixView d_y,
                    MatrixView d_a, bool add_a, MatrixView d_b, bool add_b) {
  switch (f) {
    case Binary::kAdd:
      BinaryBack(a, b, d_y, d_a, add_a, [](Vec, Vec, Vec g) { return g; });
      return BinaryBack(b, a, d_y, d_b, add_b, [](Vec, Vec, Vec g) { return g; });
    case Binary::kSubtract:
      BinaryBack(a, b, d_y, d_a, add_a, [](Vec, Vec, Vec g) { return g; });
      return BinaryBack(b, a, d_y, d_b, add_b, [](Vec, Vec, Vec g) { return -g; });
    case Binary::kMultiply:
      BinaryBack(a, b, d_y, d_a, add_a, [](Vec, Vec t, Vec g) { return g * t; });
      return BinaryBack(b, a, d_y, d_b, add_b, [](Vec, Vec t, Vec g) { return g * t; });
    case Binary::kDivide:
      BinaryBack(a, b, d_y, d_a, add_a, [](Vec, Vec t, Vec g) { return g / t; });
      return BinaryBack(b, a, d_y, d_b, add_b,
                        [](Vec s, Vec t, Vec g) { return -g * t / (s * s); });
    case Binary::kMin:
      BinaryBack(a, b, d_y, d_a, add_a,
                 [](Vec s, Vec t, Vec g) { return g * Share(s < t, s == t); });
      return BinaryBack(b, a, d_y, d_b, add_b,
                        [](Vec s, Vec t, Vec g) { return g * Share(s < t, s == t); });
    case Binary::kMax:
      BinaryBack(a, b, d_y, d_a, add_a,
                 [](Vec s, Vec t, Vec g) { return g * Share(s > t, s == t); });
      return BinaryBack(b, a, d_y, d_b, add_b,
                        [](Vec s, Vec t, Vec g) { return g * Share(s > t, s == t); });
  }
}

// ---- sums over a column ----

// The sum of f(i) over i < n, where f(i) gives a Vec or, of one index, a float.
template <typename F, typename G>
inline float SumOver(int n, const F& vectors, const G& singles) {
  Vec sum{};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) sum += vectors(i);
  float total = Sum(sum);
  for (; i < n; ++i) total += singles(i);
  return total;
}

inline float SumOf(const float* x, int n) {
  return SumOver(
      n, [x](int i) { return Load(x + i); }, [x](int i) { return x[i]; });
}

inline float Dot(const float* x, const float* y, int n) {
  return SumOver(
      n, [=](int i) { return Load(x + i) * Load(y + i); }, [=](int i) { return x[i] * y[i]; });
}

inline float MaxOf(const float* x, int n) {
  float most = x[0];
  int i = 0;
  if (n >= kLanes) {
    Vec best = Load(x);
    for (i = kLanes; i + kLanes <= n; i += kLanes) best = Max(best, Load(x + i));
    for (int lane = 0; lane < kLanes; ++lane) most = best[lane] > most ? best[lane] : most;
  }
  for (; i < n; ++i) most = x[i] > most ? x[i] : most;
  return most;
}

// y = softmax(scale * x) or its logarithm, over n values.
inline void SoftmaxColumn(const float* x, float* y, int n, float scale, bool log) {
  const float most = MaxOf(x, n);
  const auto exponent = [=](auto v) { return (v - most) * scale; };
  const auto size = static_cast<std::size_t>(n);
  if (log) {
    const float total = SumOver(
        n, [=](int i) { return Exp(exponent(Load(x + i))); },
        [=](int i) { return First(Exp(exponent(Splat(x[i])))); });
    const float shift = First(Log(Splat(total)));
    Map(x, y, size, [=](Wide v) { return exponent(v) - shift; });
    return;
  }
  Map(x, y, size, [=](Wide v) { return Exp(exponent(v)); });
  const float inverse = 1.0F / SumOf(y, n);
  Map(y, y, size, [=](Wide v) { return v * inverse; });
}

void Softmax(ConstMatrixView x, int group, bool log, MatrixView y) {
  for (int c = 0; c < y.columns; ++c) {
    for (int i = 0; i < y.rows; i += group) {
      SoftmaxColumn(x.Column(c) + i, y.Column(c) + i, group, 1.0F, log);
    }
  }
}

void SoftmaxBackward(ConstMatrixView y, int group, bool log, ConstMatrixView d_y, MatrixView d_x,
                     bool add) {
  for (int c = 0; c < y.columns; ++c) {
    for (int i = 0; i < y.rows; i += group) {
      const ConstMatrixView p(y.Column(c) + i, group, 1, group);
      const ConstMatrixView d(d_y.Column(c) + i, group, 1, group);
      const MatrixView out{d_x.Column(c) + i, group, 1, group};
      if (log) {
        const float total = SumOf(d.data, group);
        BackMatrix(p, d, out, add, [=](Wide l, Wide g) { return g - Exp(l) * total; });
      } else {
        const float total = Dot(p.data, d.data, group);
        BackMatrix(p, d, out, add, [=](Wide v, Wide g) { return v * (g - total); });
      }
    }
  }
}

void SoftmaxMean(ConstMatrixView x, int group, const float* points, MatrixView log_sum,
                 MatrixView mean) {
  const int half = group / 2;
  for (int c = 0; c < x.columns; ++c) {
    for (int i = 0; i * group < x.rows; ++i) {
      // from the middle outwards, point by point with its mirror image
      const float* const lower = x.Column(c) + i * group;
      const float* const upper = lower + group - half;
      const float* const upper_points = points == nullptr ? nullptr : points + group - half;
      const float most = MaxOf(lower, group);
      Vec total{};
      Vec dot{};
      int j = 0;
      for (; j + kLanes <= half; j += kLanes) {
        const Vec up = Exp(Load(upper + j) - most);
        const Vec down = Exp(Reverse(Load(lower + half - j - kLanes)) - most);
        total += up + down;
        if (points != nullptr) dot = Fma(Load(upper_points + j), up - down, dot);
      }
      if (j < half) {
        // what is missing counts nothing
        Vec up = Splat(most - 200.0F);
        Vec down = up;
        for (int k = 0; k < half - j; ++k) {
          up[k] = upper[j + k];
          down[k] = lower[half - 1 - j - k];
        }
        up = Exp(up - most);
        down = Exp(down - most);
        total += up + down;
        if (points != nullptr) dot = Fma(LoadFirst(upper_points + j, half - j), up - down, dot);
      }
      const float middle = group % 2 == 0 ? 0.0F : First(Exp(Splat(lower[half] - most)));
      const float sum = Sum(total) + middle;
      log_sum.Column(c)[i] = most + First(Log(Splat(sum)));
      if (points != nullptr) mean.Column(c)[i] = Sum(dot) / sum;
    }
  }
}

void SoftmaxMeanBack(ConstMatrixView x, int group, const float* points, ConstMatrixView log_sum,
                     ConstMatrixView mean, ConstMatrixView d, MatrixView d_x, bool add) {
  for (int c = 0; c < x.columns; ++c) {
    for (int i = 0; i * group < x.rows; ++i) {
      const float shift = log_sum.Column(c)[i];
      const float factor = d.Column(c)[i];
      const ConstMatrixView from(x.Column(c) + i * group, group, 1, group);
      const MatrixView out{d_x.Column(c) + i * group, group, 1, group};
      if (points == nullptr) {
        BackMatrix(from, from, out, add, [=](Wide v, Wide) { return factor * Exp(v - shift); });
      } else {
        const float centre = mean.Column(c)[i];
        BackMatrix(from, {points, group, 1, group}, out, add,
                   [=](Wide v, Wide b) { return factor * Exp(v - shift) * (b - centre); });
      }
    }
  }
}

void Normalise(bool centre, float epsilon, ConstMatrixView x, const float* scale,
               const float* shift, float* moments, MatrixView y) {
  const int n = x.rows;
  const float part = 1.0F / static_cast<float>(n);
  for (int c = 0; c < x.columns; ++c, moments += 2) {
    const float* const p = x.Column(c);
    float* const out = y.Column(c);
    const float mean = centre ? SumOf(p, n) * part : 0.0F;
    const float variance = part * SumOver(
                                      n,
                                      [=](int i) {
                                        const Vec v = Load(p + i) - mean;
                                        return v * v;
                                      },
                                      [=](int i) { return (p[i] - mean) * (p[i] - mean); });
    const float inverse = 1.0F / __builtin_sqrtf(variance + epsilon);
    moments[0] = mean;
    moments[1] = inverse;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      Vec v = (Load(p + i) - mean) * inverse;
      if (scale != nullptr) v *= Load(scale + i);
      if (shift != nullptr) v += Load(shift + i);
      Store(out + i, v);
    }
    for (; i < n; ++i) {
      const float v = (p[i] - mean) * inverse;
      out[i] = v * (scale == nullptr ? 1.0F : scale[i]) + (shift == nullptr ? 0.0F : shift[i]);
    }
  }
}

void NormaliseBack(bool centre, ConstMatrixView x, const float* scale, const float* moments,
                   ConstMatrixView d_y, float* d_scale, float* d_shift, MatrixView d_x, bool add) {
  const int n = x.rows;
  const float part = 1.0F / static_cast<float>(n);
  for (int c = 0; c < x.columns; ++c, moments += 2) {
    const float* const p = x.Column(c);
    const float* const d = d_y.Column(c);
    const float mean = moments[0];
    const float inverse = moments[1];
    // sums of g = scale d and of g times the normalised x
    Vec sums{};
    Vec dots{};
    float sum = 0.0F;
    float dot = 0.0F;
    int i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const Vec v = (Load(p + i) - mean) * inverse;
      const Vec d_out = Load(d + i);
      const Vec g = scale == nullptr ? d_out : d_out * Load(scale + i);
      sums += g;
      dots += g * v;
      if (d_scale != nullptr) Store(d_scale + i, Load(d_scale + i) + d_out * v);
      if (d_shift != nullptr) Store(d_shift + i, Load(d_shift + i) + d_out);
    }
    for (; i < n; ++i) {
      const float v = (p[i] - mean) * inverse;
      const float g = scale == nullptr ? d[i] : d[i] * scale[i];
      sum += g;
      dot += g * v;
      if (d_scale != nullptr) d_scale[i] += d[i] * v;
      if (d_shift != nullptr) d_shift[i] += d[i];
    }
    if (d_x.data == nullptr) continue;
    const float level = centre ? (sum + Sum(sums)) * part : 0.0F;
    const float slope = (dot + Sum(dots)) * part;
    float* const out = d_x.Column(c);
    for (i = 0; i + kLanes <= n; i += kLanes) {
      const Vec v = (Load(p + i) - mean) * inverse;
      const Vec g = scale == nullptr ? Load(d + i) : Load(d + i) * Load(scale + i);
      const Vec value = (g - level - v * slope) * inverse;
      Store(out + i, add ? Load(out + i) + value : value);
    }
    for (; i < n; ++i) {
      const float v = (p[i] - mean) * inverse;
      const float g = scale == nullptr ? d[i] : d[i] * scale[i];
      const float value = (g - level - v * slope) * inverse;
      out[i] = add ? out[i] + value : value;
    }
  }
}

// ---- gated recurrent unit ----

void GruForward(const GruArgs& g) {
  const auto n = static_cast<std::size_t>(g.h.rows);
  for (int c = 0; c < g.h.columns; ++c) {
    const float* const x = g.x.Column(c);
    const float* const h = g.h.Column(c);
    float* const s = g.saved.Column(c);
    float* const next = g.next.Column(c);
    ForParts(n, [=](std::size_t i, int count) {
      const Wide r = Sigmoid(LoadPart(x + i, count) + LoadPart(s + i, count));
      const Wide z = Sigmoid(LoadPart(x + n + i, count) + LoadPart(s + n + i, count));
      const Wide m = Tanh(Fma(r, LoadPart(s + 2 * n + i, count), LoadPart(x + 2 * n + i, count)));
      StorePart(s + i, r, count);
      StorePart(s + n + i, z, count);
      StorePart(s + 3 * n + i, m, count);
      StorePart(next + i, Fma(z, LoadPart(h + i, count) - m, m), count);
    });
  }
}

void GruBackward(const GruArgs& g) {
  const auto n = static_cast<std::size_t>(g.h.rows);
  for (int c = 0; c < g.h.columns; ++c) {
    const float* const h = g.h.Column(c);
    const float* const s = g.saved.Column(c);
    const float* const d_next = g.d_next.Column(c);
    float* const d_u = g.d_u.Column(c);
    float* const d_x = g.d_x.data == nullptr ? nullptr : g.d_x.Column(c);
    float* const d_h = g.d_h.data == nullptr ? nullptr : g.d_h.Column(c);
    const auto put = [](float* p, Wide v, int count, bool add) {
      StorePart(p, add ? LoadPart(p, count) + v : v, count);
    };
    ForParts(n, [=, &g](std::size_t i, int count) {
      const Wide r = LoadPart(s + i, count);
      const Wide z = LoadPart(s + n + i, count);
      const Wide u = LoadPart(s + 2 * n + i, count);
      const Wide m = LoadPart(s + 3 * n + i, count);
      const Wide d = LoadPart(d_next + i, count);
      const Wide d_m = d * (1.0F - z) * (1.0F - m * m);
      const Wide d_z = d * (LoadPart(h + i, count) - m) * z * (1.0F - z);
      const Wide d_r = d_m * u * r * (1.0F - r);
      StorePart(d_u + i, d_r, count);
      StorePart(d_u + n + i, d_z, count);
      StorePart(d_u + 2 * n + i, d_m * r, count);
      if (d_x != nullptr) {
        put(d_x + i, d_r, count, g.add_x);
        put(d_x + n + i, d_z, count, g.add_x);
        put(d_x + 2 * n + i, d_m, count, g.add_x);
      }
      if (d_h != nullptr) put(d_h + i, d * z, count, g.add_h);
    });
  }
}

// ---- attention ----

// The part of one head and sample in q (or k, v, y and their gradients), `tokens` columns.
template <typename View>
inline auto HeadPart(const View& x, const AttentionArgs& a, int head, int sample, int tokens) {
  return x.data + static_cast<Stride>(sample) * tokens * x.stride + head * a.width;
}

inline float InverseRoot(int n) { return 1.0F / __builtin_sqrtf(static_cast<float>(n)); }

void Attention(const AttentionArgs& a) {
  const float scale = InverseRoot(a.width);
  float* weights = a.weights;
  for (int sample = 0; sample < a.batch; ++sample) {
    for (int head = 0; head < a.heads; ++head, weights += static_cast<Stride>(a.keys) * a.queries) {
      GemmArgs scores;
      scores.m = a.keys;
      scores.n = a.queries;
      scores.k = a.width;
      scores.a = HeadPart(a.k, a, head, sample, a.keys);
      scores.a_row = a.k.stride;
      scores.a_col = 1;
      scores.b = HeadPart(a.q, a, head, sample, a.queries);
      scores.b_col = a.q.stride;
      scores.c = weights;
      scores.c_col = a.keys;
      Gemm(scores);
      for (int t = 0; t < a.queries; ++t) {
        float* const column = weights + static_cast<Stride>(t) * a.keys;
        const int seen = a.causal && t + 1 < a.keys ? t + 1 : a.keys;
        SoftmaxColumn(column, column, seen, scale, false);
        for (int i = seen; i < a.keys; ++i) column[i] = 0.0F;
      }
      GemmArgs mix;
      mix.m = a.width;
      mix.n = a.queries;
      mix.k = a.keys;
      mix.a = HeadPart(a.v, a, head, sample, a.keys);
      mix.a_col = a.v.stride;
      mix.b = weights;
      mix.b_col = a.keys;
      mix.c = HeadPart(a.y, a, head, sample, a.queries);
      mix.c_col = a.y.stride;
      Gemm(mix);
    }
  }
}

void AttentionBackward(const AttentionArgs& a) {
  const float scale = InverseRoot(a.width);
  const float* weights = a.weights;
  for (int sample = 0; sample < a.batch; ++sample) {
    for (int head = 0; head < a.heads; ++head, weights += static_cast<Stride>(a.keys) * a.queries) {
      const float* const d_y = HeadPart(a.d_y, a, head, sample, a.queries);
      if (a.d_v.data != nullptr) {
        GemmArgs d_v;
        d_v.m = a.width;
        d_v.n = a.keys;
        d_v.k = a.queries;
        d_v.a = d_y;
        d_v.a_col = a.d_y.stride;
        d_v.b = weights;
        d_v.b_row = a.keys;
        d_v.b_col = 1;
        d_v.c = HeadPart(a.d_v, a, head, sample, a.keys);
        d_v.c_col = a.d_v.stride;
        d_v.accumulate = a.add_v;
        Gemm(d_v);
      }
      if (a.d_q.data == nullptr && a.d_k.data == nullptr) continue;
      GemmArgs d_weights;
      d_weights.m = a.keys;
      d_weights.n = a.queries;
      d_weights.k = a.width;
      d_weights.a = HeadPart(a.v, a, head, sample, a.keys);
      d_weights.a_row = a.v.stride;
      d_weights.a_col = 1;
      d_weights.b = d_y;
      d_weights.b_col = a.d_y.stride;
      d_weights.c = a.scratch;
      d_weights.c_col = a.keys;
      Gemm(d_weights);
      for (int t = 0; t < a.queries; ++t) {
        float* const d = a.scratch + static_cast<Stride>(t) * a.keys;
        const float* const p = weights + static_cast<Stride>(t) * a.keys;
        const float total = Dot(p, d, a.keys);
        Update(p, d, static_cast<std::size_t>(a.keys),
               [=](Wide v, Wide g) { return v * (g - total) * scale; });
      }
      if (a.d_q.data != nullptr) {
        GemmArgs d_q;
        d_q.m = a.width;
        d_q.n = a.queries;
        d_q.k = a.keys;
        d_q.a = HeadPart(a.k, a, head, sample, a.keys);
        d_q.a_col = a.k.stride;
        d_q.b = a.scratch;
        d_q.b_col = a.keys;
        d_q.c = HeadPart(a.d_q, a, head, sample, a.queries);
        d_q.c_col = a.d_q.stride;
        d_q.accumulate = a.add_q;
        Gemm(d_q);
      }
      if (a.d_k.data != nullptr) {
        GemmArgs d_k;
        d_k.m = a.width;
        d_k.n = a.keys;
        d_k.k = a.queries;
        d_k.a = HeadPart(a.q, a, head, sample, a.queries);
        d_k.a_col = a.q.stride;
        d_k.b = a.scratch;
        d_k.b_row = a.keys;
        d_k.b_col = 1;
        d_k.c = HeadPart(a.d_k, a, head, sample, a.keys);
        d_k.c_col = a.d_k.stride;
        d_k.accumulate = a.add_k;
        Gemm(d_k);
      }
    }
  }
}

// ---- reductions ----

void Reduce(ConstMatrixView x, float scale, MatrixView y) {
  if (y.rows == 1) {
    if (y.columns == 1) Flatten(x);
    double total = 0.0;
    for (int c = 0; c < x.columns; ++c) {
      // short float sums into a double
      constexpr int kBlock = 1024;
      double sum = 0.0;
      for (int i = 0; i < x.rows; i += kBlock) {
        sum +=
            static_cast<double>(SumOf(x.Column(c) + i, x.rows - i < kBlock ? x.rows - i : kBlock));
      }
      if (y.columns > 1) {
        *y.Column(c) = scale * static_cast<float>(sum);
      } else {
        total += sum;
      }
    }
    if (y.columns == 1) *y.data = scale * static_cast<float>(total);
    return;
  }
  // rows x 1
  const auto size = static_cast<std::size_t>(y.rows);
  Map(x.data, y.data, size, [](Wide v) { return v; });
  for (int c = 1; c < x.columns; ++c) {
    Update(x.Column(c), y.data, size, [](Wide v, Wide sum) { return sum + v; });
  }
  Map(y.data, y.data, size, [=](Wide v) { return v * scale; });
}

void Expand(ConstMatrixView x, float scale, MatrixView y, bool add) {
  const Operand from(x, y.rows, y.columns);
  const Vec factor = Splat(scale);
  for (int c = 0; c < y.columns; ++c) {
    const float* const p = from.Column(c);
    float* const out = y.Column(c);
    int i = 0;
    for (; i + kLanes <= y.rows; i += kLanes) {
      const Vec value = LoadOperand(p, i, from.one_row) * factor;
      Store(out + i, add ? Load(out + i) + value : value);
    }
    for (; i < y.rows; ++i) {
      const float value = p[from.one_row ? 0 : i] * scale;
      out[i] = add ? out[i] + value : value;
    }
  }
}

constexpr Kernels MakeKernels(const char* name) {
  return {name,
          Gemm,
          Activate,
          ActivateBackward,
          Adam,
          LaProp,
          Polyak,
          SumOfSquares,
          ExpAll,
          LogAll,
          TanhAll,
          Normals,
          {UnaryForward, UnaryBackward, BinaryForward, BinaryBackward, Softmax, SoftmaxBackward,
           SoftmaxMean, SoftmaxMeanBack, Normalise, NormaliseBack, GruForward, GruBackward,
           Attention, AttentionBackward, Reduce, Expand}};
}

}  // namespace
}  // namespace msrl::internal

#endif  // MSRL_NN_GRAPH_KERNELS_BODY_H_
