#pragma once

// The operations of simd.h in plain C++; the rest is in simd_generic.h.

#include <cstdint>

#include "gallop/kernel/isa.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {
namespace {

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
inline F32 split(const F32& a, F32& n) {
  const auto power = [&](int64_t i) {
    return static_cast<int32_t>(to_bits(a.v[i]) - 0x3f400000) >> 23;
  };
  n = each([&](int64_t i) { return static_cast<float>(power(i)); });
  return each([&](int64_t i) {
    return from_bits(to_bits(a.v[i]) - (static_cast<uint32_t>(power(i)) << 23));
  });
}
struct U32 {
  uint32_t v[kLanes];
};
template <typename Function>
inline U32 each_u32(const Function& function) {
  U32 result;
  for (int64_t i = 0; i < kLanes; ++i) result.v[i] = function(i);
  return result;
}
inline U32 fill_u32(uint32_t x) {
  return each_u32([=](int64_t) { return x; });
}
inline U32 operator+(const U32& a, const U32& b) {
  return each_u32([&](int64_t i) { return a.v[i] + b.v[i]; });
}
inline U32 operator^(const U32& a, const U32& b) {
  return each_u32([&](int64_t i) { return a.v[i] ^ b.v[i]; });
}
inline U32 count_from(uint32_t x) {
  return each_u32([=](int64_t i) { return x + static_cast<uint32_t>(i); });
}
inline void multiply(const U32& a, const U32& b, U32& high, U32& low) {
  const auto product = [&](int64_t i) { return uint64_t{a.v[i]} * b.v[i]; };
  const U32 upper = each_u32([&](int64_t i) { return static_cast<uint32_t>(product(i) >> 32); });
  low = each_u32([&](int64_t i) { return static_cast<uint32_t>(product(i)); });
  high = upper;
}
inline F32 low_half(const U32& a) {
  return each([&](int64_t i) { return static_cast<float>(a.v[i] & 0xffff); });
}
inline F32 high_half(const U32& a) {
  return each([&](int64_t i) { return static_cast<float>(a.v[i] >> 16); });
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
inline void load_interleaved(const Bf16* p, F32& a, F32& b) {
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

}  // namespace
}  // namespace gallop::kernel
