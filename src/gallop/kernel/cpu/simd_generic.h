#pragma once

// The operations of simd.h that AVX2 and the baseline make from others.

#include <cstdint>

#if defined(__AVX2__)
#include "gallop/kernel/cpu/simd_avx2.h"
#else
#include "gallop/kernel/cpu/simd_baseline.h"
#endif

namespace gallop::kernel {
namespace {

inline F32 load_bits(const Bf16* p) {
  F32 a;
  __builtin_memcpy(&a, p, sizeof a);
  return a;
}
inline void store_bits(Bf16* p, const F32& a) { __builtin_memcpy(p, &a, sizeof a); }
inline F32 interleaved_bits(const Bf16* p, const Bf16* q) {
  Bf16 interleaved[2 * kLanes];
  for (int64_t i = 0; i < kLanes; ++i) {
    interleaved[2 * i] = p[i];
    interleaved[2 * i + 1] = q[i];
  }
  return load_bits(interleaved);
}
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
inline void store_interleaved(Bf16* p, const F32& a, const F32& b, int64_t n) {
  Bf16 even[kLanes], odd[kLanes];
  store(even, a);
  store(odd, b);
  for (int64_t i = 0; i < kLanes && i < n; ++i) {
    p[2 * i] = even[i];
    p[2 * i + 1] = odd[i];
  }
}

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
  float all[kLanes][kLanes], transposed[kLanes][kLanes];
  for (int64_t i = 0; i < kLanes; ++i) store(all[i], rows[i]);
  for (int64_t i = 0; i < kLanes; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) transposed[j][i] = all[i][j];
  }
  for (int64_t i = 0; i < kLanes; ++i) rows[i] = load(transposed[i]);
}

}  // namespace
}  // namespace gallop::kernel
