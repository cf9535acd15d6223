// A SIMD vector of floats, as wide as the file is compiled for, and its elementary functions.
// Included by the kernel files only; all names are local to the file, because each compiles them
// for another processor.
#ifndef MSRL_NN_VEC_H_
#define MSRL_NN_VEC_H_

#include <cstddef>
#include <cstdint>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace msrl::internal {
namespace {

#if defined(__AVX2__) && defined(__FMA__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
// What comparing vectors of type V gives.
template <typename V>
using IntOf = decltype(V{} < V{});
using IntVec = IntOf<Vec>;

template <typename V = Vec>
inline V Splat(float x) {
  return x - V{};
}
inline Vec Load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void Store(float* p, Vec v) { __builtin_memcpy(p, &v, sizeof v); }
// The first `count` lanes, zeros behind.
inline Vec LoadFirst(const float* p, int count) {
  Vec v{};
  __builtin_memcpy(&v, p, sizeof(float) * static_cast<std::size_t>(count));
  return v;
}
inline void StoreFirst(float* p, Vec v, int count) {
  __builtin_memcpy(p, &v, sizeof(float) * static_cast<std::size_t>(count));
}

// a * b + c, rounded once where the processor can.
inline Vec Fma(Vec a, Vec b, Vec c) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

// As wide as the processor can, for everything that stays in its lane: elementwise functions, and
// sums of matrix products, where a lane is an element of the product. Its width changes no bit.
// Sums across lanes are of Vec on all of these processors: their bits depend on the width.
#if defined(__AVX512F__)
constexpr int kWideLanes = 16;
typedef float Wide __attribute__((vector_size(4 * kWideLanes)));

inline Wide WideLoad(const float* p) { return _mm512_loadu_ps(p); }
inline void WideStore(float* p, Wide v) { _mm512_storeu_ps(p, v); }
inline __mmask16 FirstLanes(int count) { return static_cast<__mmask16>((1U << count) - 1U); }
inline Wide WideLoadFirst(const float* p, int count) {
  return _mm512_maskz_loadu_ps(FirstLanes(count), p);
}
inline void WideStoreFirst(float* p, Wide v, int count) {
  _mm512_mask_storeu_ps(p, FirstLanes(count), v);
}
inline Wide WideSplat(float x) { return _mm512_set1_ps(x); }
inline Wide Fma(Wide a, Wide b, Wide c) { return _mm512_fmadd_ps(a, b, c); }
inline Wide Sqrt(Wide x) {
  // all lanes; GCC 12 warns of its own _mm512_sqrt_ps
  return _mm512_maskz_sqrt_ps(static_cast<__mmask16>(0xffff), x);
}
// x where gate > 0, else 0
inline Wide WideGate(Wide gate, Wide x) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(gate, Wide{}, _CMP_GT_OQ), x);
}
#else
constexpr int kWideLanes = kLanes;
typedef Vec Wide;

inline Wide WideLoad(const float* p) { return Load(p); }
inline void WideStore(float* p, Wide v) { Store(p, v); }
inline Wide WideLoadFirst(const float* p, int count) { return LoadFirst(p, count); }
inline void WideStoreFirst(float* p, Wide v, int count) { StoreFirst(p, v, count); }
inline Wide WideSplat(float x) { return Splat(x); }
inline Wide WideGate(Wide gate, Wide x) { return gate > 0.0F ? x : Wide{}; }
#endif

inline Vec Sqrt(Vec x) {
#if defined(__AVX2__) && defined(__FMA__)
  return _mm256_sqrt_ps(x);
#elif defined(__SSE2__)
  return _mm_sqrt_ps(x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

// The functions below take a Vec or a Wide.

template <typename V>
inline V Select(IntOf<V> mask, V yes, V no) {
  return mask ? yes : no;
}
template <typename V>
inline V Max(V a, V b) {
  return Select(a > b, a, b);
}
template <typename V>
inline V Min(V a, V b) {
  return Select(a < b, a, b);
}
template <typename V>
inline V AsFloat(IntOf<V> bits) {
  return reinterpret_cast<V>(bits);
}
template <typename V>
inline IntOf<V> AsInt(V x) {
  return reinterpret_cast<IntOf<V>>(x);
}
template <typename V>
inline V Abs(V x) {
  return AsFloat<V>(AsInt(x) & 0x7fffffff);
}

inline Vec Reverse(Vec v) {
#if defined(__AVX2__) && defined(__FMA__)
  return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0);
#else
  return __builtin_shufflevector(v, v, 3, 2, 1, 0);
#endif
}

inline float Sum(Vec v) {
  float s[kLanes];
  __builtin_memcpy(s, &v, sizeof v);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
}

// exp for |x| <= 87, saturated beyond: x = n ln 2 + r, polynomial in r.
template <typename V>
inline V Exp(V x) {
  x = Min(Splat<V>(87.0F), Max(Splat<V>(-87.0F), x));
  const V magic = Splat<V>(12582912.0F);  // 1.5 * 2^23: adding it rounds to an integer
  const V n = (x * Splat<V>(1.44269504F) + magic) - magic;
  V r = Fma(n, Splat<V>(-0.693359375F), x);
  r = Fma(n, Splat<V>(2.12194440e-4F), r);
  V p = Splat<V>(1.9875691500e-4F);
  p = Fma(p, r, Splat<V>(1.3981999507e-3F));
  p = Fma(p, r, Splat<V>(8.3334519073e-3F));
  p = Fma(p, r, Splat<V>(4.1665795894e-2F));
  p = Fma(p, r, Splat<V>(1.6666665459e-1F));
  p = Fma(p, r, Splat<V>(5.0000001201e-1F));
  const V y = Fma(p, r * r, r) + 1.0F;
  const IntOf<V> exponent = __builtin_convertvector(n, IntOf<V>);
  return y * AsFloat<V>((exponent + 127) << 23);
}

// log of a positive normal number: x = m 2^e with m in [sqrt(1/2), sqrt(2)), polynomial in m - 1.
template <typename V>
inline V Log(V x) {
  const IntOf<V> bits = AsInt(x);
  const IntOf<V> e = (bits - 0x3f3504f3) >> 23;
  const V m = AsFloat<V>(bits - (e << 23)) - 1.0F;
  const V exponent = __builtin_convertvector(e, V);
  V p = Splat<V>(7.0376836292e-2F);
  p = Fma(p, m, Splat<V>(-1.1514610310e-1F));
  p = Fma(p, m, Splat<V>(1.1676998740e-1F));
  p = Fma(p, m, Splat<V>(-1.2420140846e-1F));
  p = Fma(p, m, Splat<V>(1.4249322787e-1F));
  p = Fma(p, m, Splat<V>(-1.6668057665e-1F));
  p = Fma(p, m, Splat<V>(2.0000714765e-1F));
  p = Fma(p, m, Splat<V>(-2.4999993993e-1F));
  p = Fma(p, m, Splat<V>(3.3333331174e-1F));
  const V square = m * m;
  V y = p * m * square;
  y = Fma(exponent, Splat<V>(-2.12194440e-4F), y);
  y = Fma(square, Splat<V>(-0.5F), y);
  return Fma(exponent, Splat<V>(0.693359375F), m + y);
}

template <typename V>
inline V Tanh(V x) {
  const V size = Abs(x);
  const V far = 1.0F - 2.0F / (Exp(size + size) + 1.0F);
  const V signed_far = AsFloat<V>(AsInt(far) | (AsInt(x) & static_cast<std::int32_t>(0x80000000U)));
  const V z = x * x;
  V p = Splat<V>(-5.70498872745e-3F);
  p = Fma(p, z, Splat<V>(2.06390887954e-2F));
  p = Fma(p, z, Splat<V>(-5.37397155531e-2F));
  p = Fma(p, z, Splat<V>(1.33314422036e-1F));
  p = Fma(p, z, Splat<V>(-3.33332819422e-1F));
  const V near = Fma(p * z, x, x);
  return Select(size > 0.625F, signed_far, near);
}

// sin and cos of pi t for t in [-1, 1].
inline void SinCosPi(Vec t, Vec* sin, Vec* cos) {
  const Vec magic = Splat(12582912.0F);
  const Vec quarter = ((t + t) + magic) - magic;
  const Vec y = (t - quarter * 0.5F) * 3.14159265359F;
  const Vec z = y * y;
  Vec s = Splat(-1.9515295891e-4F);
  s = Fma(s, z, Splat(8.3321608736e-3F));
  s = Fma(s, z, Splat(-1.6666654611e-1F));
  s = Fma(s * z, y, y);
  Vec c = Splat(2.443315711809948e-5F);
  c = Fma(c, z, Splat(-1.388731625493765e-3F));
  c = Fma(c, z, Splat(4.166664568298827e-2F));
  c = Fma(c, z * z, 1.0F - 0.5F * z);
  const IntVec q = __builtin_convertvector(quarter, IntVec);
  const IntVec odd = (q & 1) != 0;
  const IntVec sin_sign = (q & 2) << 30;
  const IntVec cos_sign = ((q + 1) & 2) << 30;
  *sin = AsFloat<Vec>(AsInt(Select(odd, c, s)) ^ sin_sign);
  *cos = AsFloat<Vec>(AsInt(Select(odd, s, c)) ^ cos_sign);
}

}  // namespace
}  // namespace msrl::internal

#endif  // MSRL_NN_VEC_H_
