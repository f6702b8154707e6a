#pragma once

// Vectors for the sources of this folder, each of which is compiled once for every Isa. Nothing
// else may include this file, and those sources call no inline function from elsewhere, of the
// standard library neither: the linker keeps one copy of each, compiled for a machine that need not
// be this.

#include <cstdint>

#include "gallop/kernel/isa.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gallop::kernel {
namespace {

/// 16 numbers, in as many registers as the machine needs for them: every Isa adds in one order.
inline constexpr int64_t kLanes = 16;

#if defined(__AVX512F__)

inline constexpr Isa kIsa = Isa::kAvx512;

struct F32 {
  __m512 v;
};

inline F32 fill(float x) { return {_mm512_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
/// a * b + c, and c - a * b, rounded once where the machine can.
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 fnma(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }

/// Square root; error below 1 ulp. Smaller than true below 2^-126, NaN of infinity.
inline F32 root(F32 a) {
  // A third of the time of the exact instruction: Newton's step on the machine's estimate.
  const F32 estimate{_mm512_rsqrt14_ps(max(a, fill(0x1p-126F)).v)};
  const F32 half = fill(0.5F) * estimate;
  const F32 first = a * estimate;
  const F32 second = fma(fnma(first, first, a), half, first);
  return fma(fnma(second, second, a), half, second);
}
/// a / b for finite b of a size in [2^-126, 2^126); error below 1 ulp.
inline F32 quotient(F32 a, F32 b) {
  const F32 estimate{_mm512_rcp14_ps(b.v)};
  const F32 inverse = fma(fnma(b, estimate, fill(1)), estimate, estimate);
  const F32 first = a * inverse;
  return fma(fnma(b, first, a), inverse, first);
}

#elif defined(__AVX2__)

inline constexpr Isa kIsa = Isa::kAvx2;

struct F32 {
  __m256 low, high;
};

inline F32 fill(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F32 a) {
  _mm256_storeu_ps(p, a.low);
  _mm256_storeu_ps(p + 8, a.high);
}
inline F32 operator+(F32 a, F32 b) {
  return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}
inline F32 operator-(F32 a, F32 b) {
  return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}
inline F32 operator*(F32 a, F32 b) {
  return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}
inline F32 max(F32 a, F32 b) {
  return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}
inline F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline F32 fnma(F32 a, F32 b, F32 c) {
  return {_mm256_fnmadd_ps(a.low, b.low, c.low), _mm256_fnmadd_ps(a.high, b.high, c.high)};
}
inline F32 root(F32 a) { return {_mm256_sqrt_ps(a.low), _mm256_sqrt_ps(a.high)}; }
inline F32 quotient(F32 a, F32 b) {
  return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

#else

inline constexpr Isa kIsa = Isa::kBaseline;

struct F32 {
  float v[kLanes];
};

template <typename Function>
inline F32 each(const Function& function) {
  F32 result;
  for (int64_t i = 0; i < kLanes; ++i) result.v[i] = function(i);
  return result;
}

inline F32 fill(float x) {
  return each([=](int64_t) { return x; });
}
inline F32 load(const float* p) {
  return each([=](int64_t i) { return p[i]; });
}
inline void store(float* p, const F32& a) {
  for (int64_t i = 0; i < kLanes; ++i) p[i] = a.v[i];
}
inline F32 operator+(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] + b.v[i]; });
}
inline F32 operator-(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] - b.v[i]; });
}
inline F32 operator*(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] * b.v[i]; });
}
inline F32 max(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
inline F32 fma(const F32& a, const F32& b, const F32& c) { return a * b + c; }
inline F32 fnma(const F32& a, const F32& b, const F32& c) { return c - a * b; }
inline F32 root(const F32& a) {
  return each([&](int64_t i) { return __builtin_sqrtf(a.v[i]); });
}
inline F32 quotient(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] / b.v[i]; });
}

#endif

/// All lanes, added in order in fp64.
inline double sum_fp64(F32 a) {
  float lanes[kLanes];
  store(lanes, a);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

}  // namespace
}  // namespace gallop::kernel
