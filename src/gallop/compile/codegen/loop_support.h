#pragma once

// What generated kernels are written in: one value for a row is a float, double, int64_t or bool;
// one for each of 16 elements is an F32, F64, I64 or Mask. Compiled at run time, with -fwrapv.

#include <cstdint>

#include "gallop/compile/codegen/loop_arguments.h"
#include "gallop/kernel/cpu/math_ieee.h"

namespace gallop::kernel {
namespace {

template <typename T>
struct Many {
  T v[kLanes];
};
using F64 = Many<double>;
using I64 = Many<int64_t>;

template <typename To, typename Function>
inline To each_lane(const Function& function) {
  To result;
  for (int64_t i = 0; i < kLanes; ++i) result.v[i] = function(i);
  return result;
}
template <typename Function>
inline Mask mask_where(const Function& function) {
  uint32_t all = 0;
  for (int64_t i = 0; i < kLanes; ++i) all |= static_cast<uint32_t>(function(i)) << i;
  return mask_of(static_cast<uint16_t>(all));
}
template <typename T, typename Function>
inline Many<T> by_lanes(const Many<T>& a, const Function& function) {
  return each_lane<Many<T>>([&](int64_t i) { return function(a.v[i]); });
}
template <typename T, typename Function>
inline Many<T> by_lanes(const Many<T>& a, const Many<T>& b, const Function& function) {
  return each_lane<Many<T>>([&](int64_t i) { return function(a.v[i], b.v[i]); });
}
template <typename T, typename Function>
inline Mask compare_lanes(const Many<T>& a, const Many<T>& b, const Function& function) {
  return mask_where([&](int64_t i) { return function(a.v[i], b.v[i]); });
}
template <typename T>
inline Many<T> select(const Mask& mask, const Many<T>& a, const Many<T>& b) {
  const uint32_t all = bits(mask);
  return each_lane<Many<T>>([&](int64_t i) { return (all >> i & 1) != 0 ? a.v[i] : b.v[i]; });
}
inline Mask select(const Mask& mask, const Mask& a, const Mask& b) {
  return (mask & a) | (~mask & b);
}
template <typename T>
inline T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// One value in all lanes.
inline F32 spread(float x) { return fill(x); }
inline F64 spread(double x) {
  return each_lane<F64>([=](int64_t) { return x; });
}
inline I64 spread(int64_t x) {
  return each_lane<I64>([=](int64_t) { return x; });
}
inline Mask spread(bool x) { return mask_of(x ? 0xffff : 0); }
inline I64 count_from(int64_t first) {
  return each_lane<I64>([=](int64_t i) { return first + i; });
}

// Single numbers in memory. A bool is a byte.
inline float read(const float* p) { return *p; }
inline float read(const Bf16* p) { return as_fp32(*p); }
inline double read(const double* p) { return *p; }
inline bool read(const uint8_t* p) { return *p != 0; }
inline int64_t read(const int32_t* p) { return *p; }
inline int64_t read(const int64_t* p) { return *p; }
inline void write(float* p, float x) { *p = x; }
inline void write(Bf16* p, float x) {
  Bf16 all[kLanes];
  store(all, fill(x));
  *p = all[0];
}
inline void write(double* p, double x) { *p = x; }
inline void write(uint8_t* p, bool x) { *p = x ? 1 : 0; }
inline void write(int32_t* p, int64_t x) { *p = static_cast<int32_t>(x); }
inline void write(int64_t* p, int64_t x) { *p = x; }

/// All lanes, or the first of them; others are 0 when read.
struct AllLanes {
  static constexpr int64_t count = kLanes;
};
struct FirstLanes {
  int64_t count;
};

template <typename Number>
concept Vectorized = __is_same(Number, float) || __is_same(Number, Bf16);

template <Vectorized Number>
inline F32 get(AllLanes, const Number* p) {
  return load(p);
}
template <Vectorized Number>
inline F32 get(FirstLanes lanes, const Number* p) {
  return load(p, lanes.count);
}
template <typename Lanes>
inline Mask get(Lanes lanes, const uint8_t* p) {
  return load_mask(p, lanes.count);
}
template <typename Lanes, typename Number>
inline auto get(Lanes lanes, const Number* p) {
  using Read = decltype(read(p));
  return each_lane<Many<Read>>([&](int64_t i) { return i < lanes.count ? read(p + i) : Read(); });
}
template <typename Lanes, typename Number>
inline auto get(Lanes lanes, const Number* p, int64_t stride) {
  if constexpr (__is_same(Number, uint8_t)) {
    return mask_where([&](int64_t i) { return i < lanes.count && p[i * stride] != 0; });
  } else if constexpr (Vectorized<Number>) {
    float all[kLanes];
    for (int64_t i = 0; i < kLanes; ++i) all[i] = i < lanes.count ? read(p + i * stride) : 0;
    return load(all);
  } else {
    using Read = decltype(read(p));
    return each_lane<Many<Read>>(
        [&](int64_t i) { return i < lanes.count ? read(p + i * stride) : Read(); });
  }
}
template <Vectorized Number>
inline void put(AllLanes, Number* p, const F32& a) {
  store(p, a);
}
template <Vectorized Number>
inline void put(FirstLanes lanes, Number* p, const F32& a) {
  store(p, a, lanes.count);
}
template <typename Lanes>
inline void put(Lanes lanes, uint8_t* p, const Mask& a) {
  store_mask(p, a, lanes.count);
}
template <typename Lanes, typename Number, typename T>
inline void put(Lanes lanes, Number* p, const Many<T>& a) {
  for (int64_t i = 0; i < lanes.count; ++i) write(p + i, a.v[i]);
}
template <typename Lanes, typename Number>
inline void put(Lanes lanes, Number* p, int64_t stride, const F32& a) {
  Number all[kLanes];
  store(all, a);
  for (int64_t i = 0; i < lanes.count; ++i) p[i * stride] = all[i];
}
template <typename Lanes>
inline void put(Lanes lanes, uint8_t* p, int64_t stride, const Mask& a) {
  const uint32_t all = bits(a);
  for (int64_t i = 0; i < lanes.count; ++i) p[i * stride] = static_cast<uint8_t>(all >> i & 1);
}
template <typename Lanes, typename Number, typename T>
inline void put(Lanes lanes, Number* p, int64_t stride, const Many<T>& a) {
  for (int64_t i = 0; i < lanes.count; ++i) write(p + i * stride, a.v[i]);
}

/// Calls body(position, lanes) for each vector from `begin` to `end`.
template <typename Body>
inline void over_lanes(int64_t begin, int64_t end, const Body& body) {
  int64_t at = begin;
  for (; at + kLanes <= end; at += kLanes) body(at, AllLanes());
  if (at < end) body(at, FirstLanes{end - at});
}

/// Which of kSlots sums a vector goes to.
inline constexpr int64_t kSlots = 4;
template <int64_t kSlot>
struct Slot {
  static constexpr int64_t value = kSlot;
};
/// Calls body(position, lanes, slot) likewise.
template <typename Body>
inline void over_slots(int64_t begin, int64_t end, const Body& body) {
  static_assert(kSlots == 4);
  int64_t at = begin;
  for (; at + kSlots * kLanes <= end; at += kSlots * kLanes) {
    body(at, AllLanes(), Slot<0>());
    body(at + kLanes, AllLanes(), Slot<1>());
    body(at + 2 * kLanes, AllLanes(), Slot<2>());
    body(at + 3 * kLanes, AllLanes(), Slot<3>());
  }
  over_lanes(at, end, [&](int64_t i, auto lanes) { body(i, lanes, Slot<0>()); });
}

}  // namespace
}  // namespace gallop::kernel
