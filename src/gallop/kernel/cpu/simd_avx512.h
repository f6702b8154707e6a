#pragma once

// The operations of simd.h in one register of AVX-512.

#include <immintrin.h>

#include <limits>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {
namespace {

#if defined(__AMX_BF16__)
inline constexpr Isa kIsa = Isa::kAmx;
#elif defined(__AVX512BF16__)
inline constexpr Isa kIsa = Isa::kAvx512Bf16;
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
#if defined(__AVX512BF16__)
// Numbers below the range of normal ones become 0.
inline __m256i to_bf16(F32 a) { return reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(a.v)); }
#else
inline __m256i to_bf16(F32 a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i last = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(last, _mm512_set1_epi32(0x7fff)));
  // The sum could turn a NaN into an infinity.
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(quiet, 16));
}
#endif
inline F32 load_bits(const Bf16* p) { return {_mm512_loadu_ps(p)}; }
inline void store_bits(Bf16* p, F32 a) { _mm512_storeu_ps(p, a.v); }
inline F32 interleaved_bits(const Bf16* p, const Bf16* q) {
  const auto wide = [](const Bf16* from) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
  };
  return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_slli_epi32(wide(q), 16), wide(p)))};
}
inline void load_interleaved(const Bf16* p, F32& a, F32& b) {
  const __m512i both = _mm512_loadu_si512(p);
  a = {_mm512_castsi512_ps(_mm512_slli_epi32(both, 16))};
  b = {_mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536)))};
}
inline void store_interleaved(Bf16* p, F32 a, F32 b, int64_t n) {
  const __m512i upper = _mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(b)), 16);
  const __m512i interleaved = _mm512_or_si512(upper, _mm512_cvtepu16_epi32(to_bf16(a)));
  _mm512_mask_storeu_epi32(p, n < kLanes ? first(n) : __mmask16{0xffff}, interleaved);
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
inline F32 split(F32 a, F32& n) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i whole =
      _mm512_srai_epi32(_mm512_sub_epi32(bits, _mm512_set1_epi32(0x3f400000)), 23);
  n = {_mm512_cvtepi32_ps(whole)};
  return {_mm512_castsi512_ps(_mm512_sub_epi32(bits, _mm512_slli_epi32(whole, 23)))};
}

/// Smaller than true below 2^-126.
inline F32 root(F32 a) {
  // A third of the time of the exact instruction: Newton's step on the machine's estimate.
  const F32 estimate{_mm512_rsqrt14_ps(max(a, fill(0x1p-126F)).v)};
  const F32 half = fill(0.5F) * estimate;
  const F32 first = a * estimate;
  const F32 second = fma(fnma(first, first, a), half, first);
  const F32 better = fma(fnma(second, second, a), half, second);
  return select(fill(std::numeric_limits<float>::infinity()) > a, better, a);
}
/// For b of a size in [2^-126, 2^126), or infinity.
inline F32 quotient(F32 a, F32 b) {
  const F32 estimate{_mm512_rcp14_ps(b.v)};
  const F32 better = fma(fnma(b, estimate, fill(1)), estimate, estimate);
  const F32 first = a * better;
  const F32 result = fma(fnma(b, first, a), better, first);
  return select(fill(std::numeric_limits<float>::infinity()) > b, result, a * estimate);
}
/// 1 / b, for finite b.
inline F32 inverse(F32 b) {
  const F32 estimate{_mm512_rcp14_ps(b.v)};
  return fma(fnma(b, estimate, fill(1)), estimate, estimate);
}

inline float sum(F32 a) { return _mm512_reduce_add_ps(a.v); }
inline float largest(F32 a) { return _mm512_reduce_max_ps(a.v); }

struct U32 {
  __m512i v;
};
inline U32 fill_u32(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
inline U32 operator+(U32 a, U32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline U32 operator^(U32 a, U32 b) { return {_mm512_xor_si512(a.v, b.v)}; }
inline U32 count_from(uint32_t x) {
  return fill_u32(x) + U32{_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)};
}
inline void multiply(U32 a, U32 b, U32& high, U32& low) {
  const __m512i even = _mm512_mul_epu32(a.v, b.v);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  high = {_mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd)};
  low = {_mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32))};
}
inline F32 low_half(U32 a) {
  return {_mm512_cvtepi32_ps(_mm512_and_si512(a.v, _mm512_set1_epi32(0xffff)))};
}
inline F32 high_half(U32 a) { return {_mm512_cvtepi32_ps(_mm512_srli_epi32(a.v, 16))}; }

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

}  // namespace
}  // namespace gallop::kernel
