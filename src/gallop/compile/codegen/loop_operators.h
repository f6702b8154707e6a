#pragma once

// The operators of loop_program.h: for one number each, and vectors of fp32 for those that are
// worth it. The generator has those of other vectors made of the former, lane by lane.

#include "gallop/compile/codegen/loop_support.h"

namespace gallop::kernel {
namespace {

// In fp64, which for fp32 is then rounded once more.
template <typename T>
inline T cast_back(double x) {
  return static_cast<T>(x);
}

template <typename T>
inline T op_negate(T a) {
  return -a;
}
template <typename T>
inline T op_abs(T a) {
  if constexpr (__is_same(T, int64_t)) {
    return a < 0 ? -a : a;
  } else {
    return cast_back<T>(__builtin_fabs(a));
  }
}
template <typename T>
inline T op_sign(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}
template <typename T>
inline T op_relu(T a) {
  return a < 0 ? 0 : a;
}
template <typename T>
inline T op_floor(T a) {
  return cast_back<T>(__builtin_floor(a));
}
template <typename T>
inline T op_ceil(T a) {
  return cast_back<T>(__builtin_ceil(a));
}
template <typename T>
inline T op_trunc(T a) {
  return cast_back<T>(__builtin_trunc(a));
}
template <typename T>
inline T op_round(T a) {
  return cast_back<T>(__builtin_nearbyint(a));
}
template <typename T>
inline T op_sqrt(T a) {
  return cast_back<T>(__builtin_sqrt(a));
}
template <typename T>
inline T op_rsqrt(T a) {
  return 1 / op_sqrt(a);
}
template <typename T>
inline T op_reciprocal(T a) {
  return 1 / a;
}
template <typename T>
inline T op_exp(T a) {
  return cast_back<T>(__builtin_exp(a));
}
template <typename T>
inline T op_expm1(T a) {
  return cast_back<T>(__builtin_expm1(a));
}
template <typename T>
inline T op_log(T a) {
  return cast_back<T>(__builtin_log(a));
}
template <typename T>
inline T op_log1p(T a) {
  return cast_back<T>(__builtin_log1p(a));
}
template <typename T>
inline T op_tanh(T a) {
  return cast_back<T>(__builtin_tanh(a));
}
template <typename T>
inline T op_sigmoid(T a) {
  return cast_back<T>(1 / (1 + __builtin_exp(-static_cast<double>(a))));
}
template <typename T>
inline T op_erf(T a) {
  return cast_back<T>(__builtin_erf(a));
}
template <typename T>
inline T op_exp2(T a) {
  return cast_back<T>(__builtin_exp2(a));
}
template <typename T>
inline T op_log2(T a) {
  return cast_back<T>(__builtin_log2(a));
}
template <typename T>
inline T op_log10(T a) {
  return cast_back<T>(__builtin_log10(a));
}
template <typename T>
inline T op_sin(T a) {
  return cast_back<T>(__builtin_sin(a));
}
template <typename T>
inline T op_cos(T a) {
  return cast_back<T>(__builtin_cos(a));
}
template <typename T>
inline T op_tan(T a) {
  return cast_back<T>(__builtin_tan(a));
}
template <typename T>
inline T op_asin(T a) {
  return cast_back<T>(__builtin_asin(a));
}
template <typename T>
inline T op_acos(T a) {
  return cast_back<T>(__builtin_acos(a));
}
template <typename T>
inline T op_atan(T a) {
  return cast_back<T>(__builtin_atan(a));
}
template <typename T>
inline T op_sinh(T a) {
  return cast_back<T>(__builtin_sinh(a));
}
template <typename T>
inline T op_cosh(T a) {
  return cast_back<T>(__builtin_cosh(a));
}
template <typename T>
inline T op_erfc(T a) {
  return cast_back<T>(__builtin_erfc(a));
}
template <typename T>
inline T op_add(T a, T b) {
  return a + b;
}
template <typename T>
inline T op_subtract(T a, T b) {
  return a - b;
}
template <typename T>
inline T op_multiply(T a, T b) {
  return a * b;
}
template <typename T>
inline T op_divide(T a, T b) {
  return a / b;
}
template <typename T>
inline T op_power(T a, T b) {
  return cast_back<T>(__builtin_pow(a, b));
}
template <typename T>
inline T op_atan2(T a, T b) {
  return cast_back<T>(__builtin_atan2(a, b));
}
template <typename T>
inline T op_maximum(T a, T b) {
  return a != a || a > b ? a : b;
}
template <typename T>
inline T op_minimum(T a, T b) {
  return a != a || a < b ? a : b;
}
template <typename T>
inline T op_clamp_min(T a, T b) {
  return b > a ? b : a;
}
template <typename T>
inline T op_clamp_max(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
inline bool op_equal(T a, T b) {
  return a == b;
}
template <typename T>
inline bool op_not_equal(T a, T b) {
  return a != b;
}
template <typename T>
inline bool op_less(T a, T b) {
  return a < b;
}
template <typename T>
inline bool op_less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
inline bool op_greater(T a, T b) {
  return a > b;
}
template <typename T>
inline bool op_greater_equal(T a, T b) {
  return a >= b;
}
inline bool op_not(bool a) { return !a; }
inline bool op_and(bool a, bool b) { return a && b; }
inline bool op_or(bool a, bool b) { return a || b; }
inline bool op_xor(bool a, bool b) { return a != b; }

inline F32 op_negate(const F32& a) { return flip_sign(a); }
inline F32 op_abs(const F32& a) { return without_sign(a); }
inline F32 op_sign(const F32& a) {
  const F32 one = select(is_less(a, fill(0)), fill(-1), fill(0));
  return select(a > fill(0), fill(1), one);
}
inline F32 op_relu(const F32& a) { return max(fill(0), a); }
inline F32 op_floor(const F32& a) { return round_down(a); }
inline F32 op_ceil(const F32& a) { return round_up(a); }
inline F32 op_trunc(const F32& a) { return round_to_zero(a); }
inline F32 op_round(const F32& a) { return with_sign_of(round(a), a); }
inline F32 op_sqrt(const F32& a) { return exact_root(a); }
inline F32 op_rsqrt(const F32& a) { return divide(fill(1), exact_root(a)); }
inline F32 op_reciprocal(const F32& a) { return divide(fill(1), a); }
inline F32 op_exp(const F32& a) { return ieee_exp(a); }
inline F32 op_expm1(const F32& a) { return ieee_expm1(a); }
inline F32 op_log(const F32& a) { return log(a); }
inline F32 op_log1p(const F32& a) { return ieee_log1p(a); }
inline F32 op_tanh(const F32& a) { return ieee_tanh(a); }
inline F32 op_sigmoid(const F32& a) { return ieee_sigmoid(a); }
inline F32 op_erf(const F32& a) { return ieee_erf(a); }
inline F32 op_add(const F32& a, const F32& b) { return a + b; }
inline F32 op_subtract(const F32& a, const F32& b) { return a - b; }
inline F32 op_multiply(const F32& a, const F32& b) { return a * b; }
inline F32 op_divide(const F32& a, const F32& b) { return divide(a, b); }
inline F32 op_maximum(const F32& a, const F32& b) { return ieee_max(a, b); }
inline F32 op_minimum(const F32& a, const F32& b) { return ieee_min(a, b); }
inline F32 op_clamp_min(const F32& a, const F32& b) { return max(b, a); }
inline F32 op_clamp_max(const F32& a, const F32& b) { return min(b, a); }
inline Mask op_equal(const F32& a, const F32& b) { return is_equal(a, b); }
inline Mask op_not_equal(const F32& a, const F32& b) { return ~is_equal(a, b); }
inline Mask op_less(const F32& a, const F32& b) { return is_less(a, b); }
inline Mask op_less_equal(const F32& a, const F32& b) { return is_less_equal(a, b); }
inline Mask op_greater(const F32& a, const F32& b) { return is_less(b, a); }
inline Mask op_greater_equal(const F32& a, const F32& b) { return is_less_equal(b, a); }
inline Mask op_not(const Mask& a) { return ~a; }
inline Mask op_and(const Mask& a, const Mask& b) { return a & b; }
inline Mask op_or(const Mask& a, const Mask& b) { return a | b; }
inline Mask op_xor(const Mask& a, const Mask& b) { return a ^ b; }
inline Mask op_equal(const Mask& a, const Mask& b) { return ~(a ^ b); }
inline Mask op_not_equal(const Mask& a, const Mask& b) { return a ^ b; }

// Casts of numbers, then of vectors.
template <typename T>
inline float cast_fp32(T a) {
  return static_cast<float>(a);
}
template <typename T>
inline float cast_bf16(T a) {
  Bf16 rounded;
  write(&rounded, static_cast<float>(a));
  return as_fp32(rounded);
}
template <typename T>
inline double cast_fp64(T a) {
  return static_cast<double>(a);
}
template <typename T>
inline int64_t cast_int64(T a) {
  return static_cast<int64_t>(a);
}
template <typename T>
inline int64_t cast_int32(T a) {
  return static_cast<int32_t>(static_cast<int64_t>(a));
}
template <typename T>
inline bool cast_bool(T a) {
  return a != 0;
}

/// A number for each lane, in an array.
inline void to_array(const F32& a, float* lanes) { store(lanes, a); }
inline void to_array(const Mask& a, bool* lanes) {
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = (bits(a) >> i & 1) != 0;
}
template <typename T>
inline void to_array(const Many<T>& a, T* lanes) {
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = a.v[i];
}
inline F32 from_array(const float* lanes) { return load(lanes); }
inline F64 from_array(const double* lanes) {
  return each_lane<F64>([=](int64_t i) { return lanes[i]; });
}
inline I64 from_array(const int64_t* lanes) {
  return each_lane<I64>([=](int64_t i) { return lanes[i]; });
}
inline Mask from_array(const bool* lanes) {
  return mask_where([=](int64_t i) { return lanes[i]; });
}
/// Vectors of other types from single numbers: From and To are these.
template <typename From, typename To, typename Vector, typename Function>
inline auto cast_lanes(const Vector& a, const Function& function) {
  From from[kLanes];
  To to[kLanes];
  to_array(a, from);
  for (int64_t i = 0; i < kLanes; ++i) to[i] = function(from[i]);
  return from_array(to);
}
inline F32 cast_fp32(const Mask& a) { return select(a, fill(1), fill(0)); }
inline F32 cast_bf16(const Mask& a) { return cast_fp32(a); }
inline F32 cast_bf16(const F32& a) { return as_bf16(a); }
inline Mask cast_bool(const F32& a) { return ~is_equal(a, fill(0)); }

}  // namespace
}  // namespace gallop::kernel
