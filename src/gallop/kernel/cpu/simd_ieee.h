#pragma once

// What simd.h leaves out, for loops that must behave as LibTorch's operators do in all cases: exact
// division and root, comparisons, masks, rounding, signs and single bits.
//
//   divide(a, b), exact_root(a)          rounded correctly, infinities and NaN included
//   is_equal(a, b), is_less(a, b), is_less_equal(a, b), is_nan(a)     false where NaN is compared
//   a & b, a | b, a ^ b, ~a              of masks
//   round_down(a), round_up(a), round_to_zero(a)
//   flip_sign(a), without_sign(a), with_sign_of(a, b)
//   as_bf16(a)                           rounded to bf16, as fp32
//   load_mask(p, n), store_mask(p, a, n) of bytes that are 0 or 1

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

#if defined(__AVX512F__)

inline F32 divide(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F32 exact_root(F32 a) { return {_mm512_sqrt_ps(a.v)}; }
inline Mask is_equal(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline Mask is_less(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask is_less_equal(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask is_nan(F32 a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
inline Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
inline Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
inline Mask operator^(Mask a, Mask b) { return {static_cast<__mmask16>(a.v ^ b.v)}; }
inline Mask operator~(Mask a) { return {static_cast<__mmask16>(~a.v)}; }
inline F32 round_down(F32 a) { return {_mm512_roundscale_ps(a.v, 9)}; }
inline F32 round_up(F32 a) { return {_mm512_roundscale_ps(a.v, 10)}; }
inline F32 round_to_zero(F32 a) { return {_mm512_roundscale_ps(a.v, 11)}; }
inline F32 flip_sign(F32 a) { return {_mm512_xor_ps(a.v, _mm512_set1_ps(-0.0F))}; }
inline F32 without_sign(F32 a) { return {_mm512_andnot_ps(_mm512_set1_ps(-0.0F), a.v)}; }
inline F32 with_sign_of(F32 a, F32 b) {
  return {_mm512_or_ps(without_sign(a).v, _mm512_and_ps(b.v, _mm512_set1_ps(-0.0F)))};
}
inline F32 as_bf16(F32 a) { return from_bf16(to_bf16(a)); }
inline Mask load_mask(const uint8_t* p, int64_t n) {
  const __m128i bytes = _mm_maskz_loadu_epi8(n < kLanes ? first(n) : __mmask16{0xffff}, p);
  return {_mm_test_epi8_mask(bytes, bytes)};
}
inline void store_mask(uint8_t* p, Mask a, int64_t n) {
  _mm_mask_storeu_epi8(p, n < kLanes ? first(n) : __mmask16{0xffff}, _mm_maskz_set1_epi8(a.v, 1));
}

#else

inline F32 divide(const F32& a, const F32& b) { return quotient(a, b); }
inline F32 exact_root(const F32& a) { return root(a); }

#if defined(__AVX2__)

// Both halves of one or two vectors by the same instructions.
template <typename Function>
inline F32 halves(const F32& a, Function function) {
  return {function(a.low), function(a.high)};
}
template <int kComparison>
inline Mask compared(const F32& a, const F32& b) {
  return {_mm256_cmp_ps(a.low, b.low, kComparison), _mm256_cmp_ps(a.high, b.high, kComparison)};
}
inline Mask is_equal(F32 a, F32 b) { return compared<_CMP_EQ_OQ>(a, b); }
inline Mask is_less(F32 a, F32 b) { return compared<_CMP_LT_OQ>(a, b); }
inline Mask is_less_equal(F32 a, F32 b) { return compared<_CMP_LE_OQ>(a, b); }
inline Mask is_nan(F32 a) { return compared<_CMP_UNORD_Q>(a, a); }
inline Mask operator&(Mask a, Mask b) {
  return {_mm256_and_ps(a.low, b.low), _mm256_and_ps(a.high, b.high)};
}
inline Mask operator|(Mask a, Mask b) {
  return {_mm256_or_ps(a.low, b.low), _mm256_or_ps(a.high, b.high)};
}
inline Mask operator^(Mask a, Mask b) {
  return {_mm256_xor_ps(a.low, b.low), _mm256_xor_ps(a.high, b.high)};
}
inline Mask operator~(Mask a) { return a ^ mask_of(0xffff); }
inline F32 round_down(F32 a) {
  return halves(a, [](__m256 v) { return _mm256_round_ps(v, 9); });
}
inline F32 round_up(F32 a) {
  return halves(a, [](__m256 v) { return _mm256_round_ps(v, 10); });
}
inline F32 round_to_zero(F32 a) {
  return halves(a, [](__m256 v) { return _mm256_round_ps(v, 11); });
}
inline F32 flip_sign(F32 a) {
  return halves(a, [](__m256 v) { return _mm256_xor_ps(v, _mm256_set1_ps(-0.0F)); });
}
inline F32 without_sign(F32 a) {
  return halves(a, [](__m256 v) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), v); });
}
inline F32 with_sign_of(F32 a, F32 b) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_or_ps(without_sign(a).low, _mm256_and_ps(b.low, sign)),
          _mm256_or_ps(without_sign(a).high, _mm256_and_ps(b.high, sign))};
}

#else

template <typename Compare>
inline Mask compared(const F32& a, const F32& b, const Compare& compare) {
  Mask mask;
  for (int64_t i = 0; i < kLanes; ++i) mask.v[i] = compare(a.v[i], b.v[i]);
  return mask;
}
inline Mask is_equal(const F32& a, const F32& b) {
  return compared(a, b, [](float x, float y) { return x == y; });
}
inline Mask is_less(const F32& a, const F32& b) {
  return compared(a, b, [](float x, float y) { return x < y; });
}
inline Mask is_less_equal(const F32& a, const F32& b) {
  return compared(a, b, [](float x, float y) { return x <= y; });
}
inline Mask is_nan(const F32& a) {
  return compared(a, a, [](float x, float y) { return x != y; });
}
inline Mask operator&(const Mask& a, const Mask& b) { return mask_of(bits(a) & bits(b)); }
inline Mask operator|(const Mask& a, const Mask& b) { return mask_of(bits(a) | bits(b)); }
inline Mask operator^(const Mask& a, const Mask& b) { return mask_of(bits(a) ^ bits(b)); }
inline Mask operator~(const Mask& a) { return a ^ mask_of(0xffff); }
inline F32 round_down(const F32& a) {
  return each([&](int64_t i) { return __builtin_floorf(a.v[i]); });
}
inline F32 round_up(const F32& a) {
  return each([&](int64_t i) { return __builtin_ceilf(a.v[i]); });
}
inline F32 round_to_zero(const F32& a) {
  return each([&](int64_t i) { return __builtin_truncf(a.v[i]); });
}
inline F32 flip_sign(const F32& a) {
  return each([&](int64_t i) { return from_bits(to_bits(a.v[i]) ^ 0x80000000U); });
}
inline F32 without_sign(const F32& a) {
  return each([&](int64_t i) { return from_bits(to_bits(a.v[i]) & 0x7fffffffU); });
}
inline F32 with_sign_of(const F32& a, const F32& b) {
  return each([&](int64_t i) {
    return from_bits((to_bits(a.v[i]) & 0x7fffffffU) | (to_bits(b.v[i]) & 0x80000000U));
  });
}

#endif

inline F32 as_bf16(const F32& a) {
  Bf16 rounded[kLanes];
  store(rounded, a);
  return load(rounded);
}
inline Mask load_mask(const uint8_t* p, int64_t n) {
  uint32_t all = 0;
  for (int64_t i = 0; i < n; ++i) all |= static_cast<uint32_t>(p[i] != 0) << i;
  return mask_of(static_cast<uint16_t>(all));
}
inline void store_mask(uint8_t* p, const Mask& a, int64_t n) {
  const uint32_t all = bits(a);
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<uint8_t>(all >> i & 1);
}

#endif

}  // namespace
}  // namespace gallop::kernel
