#pragma once

// Vectors for the sources of this folder, each of which is compiled once for every Isa. Nothing
// else may include this file, and those sources call no inline function from elsewhere, of the
// standard library neither: the linker keeps one copy of each, compiled for a machine that need not
// be this.

#include <cstddef>
#include <cstdint>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/number.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace gallop::kernel {
namespace {

/// Numbers of a vector, in as many registers as the machine needs: every Isa adds in one order.
inline constexpr int64_t kLanes = 16;

// The operations, for all of which every Isa has its own form:
//   fill(x), load(p), store(p, a)      of fp32 and bf16 arrays; bf16 is rounded to nearest even
//   load(p, n), store(p, a, n)         of the first n numbers alone, n from 0 to 16; others are 0
//   load_bits(p), store_bits(p, a)     32 bf16 as they are, to be moved
//   + - * max min                      of lanes; max and min give b where a is NaN
//   store_woven(p, a, b, n)            bf16 a0 b0 a1 b1 ... of the first n lanes
//   load_woven(p, a, b)                the reverse, of all lanes
//   fma(a, b, c), fnma(a, b, c)        a * b + c and c - a * b, rounded once where the machine can
//   select(a > b, x, y)                lanes of x where the comparison holds, else of y
//   bits(mask), mask_of(bits)          lane i is bit i
//   root(a), quotient(a, b), inverse(b) below 1 ulp; see there
//   round(a), scale(a, n)              to the nearest integer; a * 2^n for whole n in [-300, 300]

#if defined(__AVX512F__)

#if defined(__AMX_BF16__)
inline constexpr Isa kIsa = Isa::kAmx;
#else
inline constexpr Isa kIsa = Isa::kAvx512;
#endif

struct F32 {
  __m512 v;
};
struct Mask {
  __mmask16 v;
};

inline __mmask16 first(int64_t n) { return static_cast<__mmask16>((1U << n) - 1); }

inline F32 fill(float x) { return {_mm512_set1_ps(x)}; }
inline F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F32 load(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(first(n), p)}; }
inline void store(float* p, F32 a, int64_t n) { _mm512_mask_storeu_ps(p, first(n), a.v); }
inline F32 from_bf16(__m256i bits) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
// In the upper halves of the lanes; the lower ones are not 0.
inline __m512i rounded_to_bf16(F32 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff)));
  // The sum could turn a NaN into an infinity.
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc00000));
}
inline F32 load_bits(const Bf16* p) { return {_mm512_loadu_ps(p)}; }
inline void store_bits(Bf16* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline __m256i to_bf16(F32 a) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_to_bf16(a), 16));
}
inline void load_woven(const Bf16* p, F32& a, F32& b) {
  const __m512i both = _mm512_loadu_si512(p);
  a = {_mm512_castsi512_ps(_mm512_slli_epi32(both, 16))};
  b = {_mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536)))};
}
inline void store_woven(Bf16* p, F32 a, F32 b, int64_t n) {
  const __m512i upper = _mm512_and_si512(rounded_to_bf16(b), _mm512_set1_epi32(-65536));
  const __m512i woven = _mm512_or_si512(upper, _mm512_srli_epi32(rounded_to_bf16(a), 16));
  _mm512_mask_storeu_epi32(p, n < kLanes ? first(n) : __mmask16{0xffff}, woven);
}
inline F32 load(const Bf16* p) {
  return from_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline F32 load(const Bf16* p, int64_t n) {
  return from_bf16(_mm256_maskz_loadu_epi16(first(n), p));
}
inline void store(Bf16* p, F32 a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(a));
}
inline void store(Bf16* p, F32 a, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), to_bf16(a)); }
inline F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F32 fnma(F32 a, F32 b, F32 c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
inline Mask operator>(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline F32 select(Mask mask, F32 a, F32 b) { return {_mm512_mask_blend_ps(mask.v, b.v, a.v)}; }
inline uint16_t bits(Mask mask) { return mask.v; }
inline Mask mask_of(uint16_t bits) { return {bits}; }
inline F32 round(F32 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
inline F32 scale(F32 a, F32 n) { return {_mm512_scalef_ps(a.v, n.v)}; }

/// Smaller than true below 2^-126, NaN of infinity.
inline F32 root(F32 a) {
  // A third of the time of the exact instruction: Newton's step on the machine's estimate.
  const F32 estimate{_mm512_rsqrt14_ps(max(a, fill(0x1p-126F)).v)};
  const F32 half = fill(0.5F) * estimate;
  const F32 first = a * estimate;
  const F32 second = fma(fnma(first, first, a), half, first);
  return fma(fnma(second, second, a), half, second);
}
/// For finite b of a size in [2^-126, 2^126).
inline F32 quotient(F32 a, F32 b) {
  const F32 estimate{_mm512_rcp14_ps(b.v)};
  const F32 better = fma(fnma(b, estimate, fill(1)), estimate, estimate);
  const F32 first = a * better;
  return fma(fnma(b, first, a), better, first);
}
/// 1 / b, likewise.
inline F32 inverse(F32 b) {
  const F32 estimate{_mm512_rcp14_ps(b.v)};
  return fma(fnma(b, estimate, fill(1)), estimate, estimate);
}

#elif defined(__AVX2__)

inline constexpr Isa kIsa = Isa::kAvx2;

struct F32 {
  __m256 low, high;
};
struct Mask {
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
inline F32 min(F32 a, F32 b) {
  return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)};
}
inline Mask operator>(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.low, b.low, _CMP_GT_OQ), _mm256_cmp_ps(a.high, b.high, _CMP_GT_OQ)};
}
inline F32 select(Mask mask, F32 a, F32 b) {
  return {_mm256_blendv_ps(b.low, a.low, mask.low), _mm256_blendv_ps(b.high, a.high, mask.high)};
}
inline uint16_t bits(Mask mask) {
  const int low = _mm256_movemask_ps(mask.low), high = _mm256_movemask_ps(mask.high);
  return static_cast<uint16_t>(low | high << 8);
}
inline Mask mask_of(uint16_t bits) {
  const __m256i all = _mm256_set1_epi32(bits);
  const auto has = [&](__m256i bit) {
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit));
  };
  const __m256i low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
  return {has(low), has(_mm256_slli_epi32(low, 8))};
}
inline F32 round(F32 a) {
  constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(a.low, kMode), _mm256_round_ps(a.high, kMode)};
}
// In two factors, as one of 2^n need not be a number.
inline __m256 scale(__m256 a, __m256 n) {
  const __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
  const auto power = [](__m256i m) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(m, _mm256_set1_epi32(127)), 23));
  };
  return _mm256_mul_ps(_mm256_mul_ps(a, power(half)), power(_mm256_sub_epi32(whole, half)));
}
inline F32 scale(F32 a, F32 n) { return {scale(a.low, n.low), scale(a.high, n.high)}; }
inline __m256 from_bf16(const Bf16* p) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
inline void to_bf16(Bf16* p, __m256 a) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff)));
  const __m256 quiet = _mm256_blendv_ps(_mm256_castsi256_ps(rounded),
                                        _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000)),
                                        _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  const __m256i high = _mm256_srli_epi32(_mm256_castps_si256(quiet), 16);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(high, high), 0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
inline F32 load(const Bf16* p) { return {from_bf16(p), from_bf16(p + 8)}; }
inline void load_woven(const Bf16* p, F32& a, F32& b) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  const __m256i low = _mm256_loadu_si256(from), high = _mm256_loadu_si256(from + 1);
  const __m256i upper = _mm256_set1_epi32(-65536);
  a = {_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
       _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
  b = {_mm256_castsi256_ps(_mm256_and_si256(low, upper)),
       _mm256_castsi256_ps(_mm256_and_si256(high, upper))};
}
inline void store(Bf16* p, F32 a) {
  to_bf16(p, a.low);
  to_bf16(p + 8, a.high);
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

inline float from_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
inline uint32_t to_bits(float x) { return __builtin_bit_cast(uint32_t, x); }

struct F32 {
  float v[kLanes];
};
struct Mask {
  bool v[kLanes];
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
inline F32 min(const F32& a, const F32& b) {
  return each([&](int64_t i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
inline Mask operator>(const F32& a, const F32& b) {
  Mask mask;
  for (int64_t i = 0; i < kLanes; ++i) mask.v[i] = a.v[i] > b.v[i];
  return mask;
}
inline F32 select(const Mask& mask, const F32& a, const F32& b) {
  return each([&](int64_t i) { return mask.v[i] ? a.v[i] : b.v[i]; });
}
inline uint16_t bits(const Mask& mask) {
  uint32_t result = 0;
  for (int64_t i = 0; i < kLanes; ++i) result |= static_cast<uint32_t>(mask.v[i]) << i;
  return static_cast<uint16_t>(result);
}
inline Mask mask_of(uint16_t bits) {
  Mask mask;
  for (int64_t i = 0; i < kLanes; ++i) mask.v[i] = bits >> i & 1;
  return mask;
}
inline F32 round(const F32& a) {
  // Adding and taking away a number whose last digit is 1 rounds; larger ones are whole.
  return each([&](int64_t i) {
    const float x = a.v[i], magic = x < 0 ? -0x1p23F : 0x1p23F;
    return x < 0x1p23F && x > -0x1p23F ? (x + magic) - magic : x;
  });
}
inline F32 scale(const F32& a, const F32& n) {
  return each([&](int64_t i) {
    const auto whole = static_cast<int32_t>(n.v[i]);
    const int32_t half = whole >> 1;
    const auto power = [](int32_t m) { return from_bits(static_cast<uint32_t>(m + 127) << 23); };
    return a.v[i] * power(half) * power(whole - half);
  });
}
inline F32 load(const Bf16* p) {
  return each([=](int64_t i) { return from_bits(static_cast<uint32_t>(p[i].bits) << 16); });
}
inline void store(Bf16* p, const F32& a) {
  for (int64_t i = 0; i < kLanes; ++i) {
    const uint32_t bits = to_bits(a.v[i]);
    const uint32_t rounded = a.v[i] == a.v[i] ? bits + 0x7fff + (bits >> 16 & 1) : 0x7fc00000;
    p[i].bits = static_cast<uint16_t>(rounded >> 16);
  }
}
inline void load_woven(const Bf16* p, F32& a, F32& b) {
  a = each([=](int64_t i) { return from_bits(static_cast<uint32_t>(p[2 * i].bits) << 16); });
  b = each([=](int64_t i) { return from_bits(static_cast<uint32_t>(p[2 * i + 1].bits) << 16); });
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

#if !defined(__AVX512F__)
inline F32 load_bits(const Bf16* p) {
  F32 a;
  __builtin_memcpy(&a, p, sizeof a);
  return a;
}
inline void store_bits(Bf16* p, const F32& a) { __builtin_memcpy(p, &a, sizeof a); }
inline F32 inverse(const F32& b) { return quotient(fill(1), b); }
template <typename Number>
inline F32 load(const Number* p, int64_t n) {
  Number all[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) all[i] = p[i];
  return load(all);
}
template <typename Number>
inline void store(Number* p, const F32& a, int64_t n) {
  Number all[kLanes];
  store(all, a);
  for (int64_t i = 0; i < n; ++i) p[i] = all[i];
}
inline void store_woven(Bf16* p, const F32& a, const F32& b, int64_t n) {
  Bf16 even[kLanes], odd[kLanes];
  store(even, a);
  store(odd, b);
  for (int64_t i = 0; i < kLanes && i < n; ++i) {
    p[2 * i] = even[i];
    p[2 * i + 1] = odd[i];
  }
}
#endif

#if defined(__AVX512F__)
/// All lanes, added in fp32 in the order of a tree.
inline float sum(F32 a) { return _mm512_reduce_add_ps(a.v); }
/// The largest lane.
inline float largest(F32 a) { return _mm512_reduce_max_ps(a.v); }

/// Turns 16 rows into 16 columns.
inline void transpose(F32* rows) {
  __m512 t[16];
  for (int i = 0; i < 16; i += 4) {
    const __m512 a = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    const __m512 b = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
    const __m512 c = _mm512_unpacklo_ps(rows[i + 2].v, rows[i + 3].v);
    const __m512 d = _mm512_unpackhi_ps(rows[i + 2].v, rows[i + 3].v);
    t[i] = _mm512_shuffle_ps(a, c, 0x44);
    t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
    t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
    t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    const __m512 a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88);
    const __m512 b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xdd);
    const __m512 c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
    const __m512 d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xdd);
    rows[i] = {_mm512_shuffle_f32x4(a, c, 0x88)};
    rows[i + 4] = {_mm512_shuffle_f32x4(b, d, 0x88)};
    rows[i + 8] = {_mm512_shuffle_f32x4(a, c, 0xdd)};
    rows[i + 12] = {_mm512_shuffle_f32x4(b, d, 0xdd)};
  }
}
#else
inline float sum(const F32& a) {
  float lanes[kLanes];
  store(lanes, a);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
inline float largest(const F32& a) {
  float lanes[kLanes];
  store(lanes, a);
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    for (int64_t i = 0; i < half; ++i) {
      lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
    }
  }
  return lanes[0];
}
inline void transpose(F32* rows) {
  float all[kLanes][kLanes], turned[kLanes][kLanes];
  for (int64_t i = 0; i < kLanes; ++i) store(all[i], rows[i]);
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) turned[j][i] = all[i][j];
  }
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load(turned[i]);
}
#endif

inline float as_fp32(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

/// All lanes, added in order in fp64.
inline double sum_fp64(const F32& a) {
  float lanes[kLanes];
  store(lanes, a);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

}  // namespace
}  // namespace gallop::kernel
