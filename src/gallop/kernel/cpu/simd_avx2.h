#pragma once

// The operations of simd.h in two registers of AVX2; the rest is in simd_generic.h.

#include <immintrin.h>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {
namespace {

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
// The first n lanes; a mask of lanes in one register is a number's signs.
inline __m256i first(int64_t n) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
}
inline F32 load(const float* p, int64_t n) {
  return {_mm256_maskload_ps(p, first(n)), _mm256_maskload_ps(p + 8, first(n - 8))};
}
inline void store(float* p, F32 a, int64_t n) {
  _mm256_maskstore_ps(p, first(n), a.low);
  _mm256_maskstore_ps(p + 8, first(n - 8), a.high);
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
inline __m256 split(__m256 a, __m256& n) {
  const __m256i bits = _mm256_castps_si256(a);
  const __m256i whole =
      _mm256_srai_epi32(_mm256_sub_epi32(bits, _mm256_set1_epi32(0x3f400000)), 23);
  n = _mm256_cvtepi32_ps(whole);
  return _mm256_castsi256_ps(_mm256_sub_epi32(bits, _mm256_slli_epi32(whole, 23)));
}
inline F32 split(F32 a, F32& n) { return {split(a.low, n.low), split(a.high, n.high)}; }
struct U32 {
  __m256i low, high;
};
inline U32 fill_u32(uint32_t x) {
  const __m256i all = _mm256_set1_epi32(static_cast<int>(x));
  return {all, all};
}
inline U32 operator+(U32 a, U32 b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
inline U32 operator^(U32 a, U32 b) {
  return {_mm256_xor_si256(a.low, b.low), _mm256_xor_si256(a.high, b.high)};
}
inline U32 count_from(uint32_t x) {
  return fill_u32(x) + U32{_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                           _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
}
inline void multiply(__m256i a, __m256i b, __m256i& high, __m256i& low) {
  const __m256i even = _mm256_mul_epu32(a, b);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
inline void multiply(U32 a, U32 b, U32& high, U32& low) {
  multiply(a.low, b.low, high.low, low.low);
  multiply(a.high, b.high, high.high, low.high);
}
inline F32 low_half(U32 a) {
  const __m256i mask = _mm256_set1_epi32(0xffff);
  return {_mm256_cvtepi32_ps(_mm256_and_si256(a.low, mask)),
          _mm256_cvtepi32_ps(_mm256_and_si256(a.high, mask))};
}
inline F32 high_half(U32 a) {
  return {_mm256_cvtepi32_ps(_mm256_srli_epi32(a.low, 16)),
          _mm256_cvtepi32_ps(_mm256_srli_epi32(a.high, 16))};
}
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
inline void load_interleaved(const Bf16* p, F32& a, F32& b) {
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

}  // namespace
}  // namespace gallop::kernel
