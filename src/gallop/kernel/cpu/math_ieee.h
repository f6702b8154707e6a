#pragma once

// Functions of vectors whose ends are those of IEEE 754: NaN in, NaN out; infinities; the sign of
// 0. Error bounds as in math.h (tests/unit/kernel/math_ieee_test.cpp).

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/simd_ieee.h"

namespace gallop::kernel {
namespace {

inline constexpr float kInfinite = __builtin_inff();

/// Each lane by a function of the C library.
template <typename Function>
inline F32 by_lanes(const F32& a, const Function& function) {
  float lanes[kLanes];
  store(lanes, a);
  for (float& lane : lanes) lane = function(lane);
  return load(lanes);
}
template <typename Function>
inline F32 by_lanes(const F32& a, const F32& b, const Function& function) {
  float left[kLanes], right[kLanes];
  store(left, a);
  store(right, b);
  for (int64_t i = 0; i < kLanes; ++i) left[i] = function(left[i], right[i]);
  return load(left);
}

/// The larger; NaN where either is.
inline F32 ieee_max(const F32& a, const F32& b) { return select(is_nan(a), a, max(a, b)); }
inline F32 ieee_min(const F32& a, const F32& b) { return select(is_nan(a), a, min(a, b)); }

/// 1.1 ulp.
inline F32 ieee_exp(const F32& x) { return select(is_nan(x), x, exp(x)); }

/// e^x - 1; 2 ulp.
inline F32 ieee_expm1(const F32& x) {
  // As exp_within, without its last 1; 2^(n - 1) is finite where 2^n is not.
  const F32 bounded = min(max(x, fill(-30)), fill(89));
  const F32 n = round(bounded * fill(0x1.715476p+0F));
  const F32 f = fnma(n, fill(0x1.7f7d1cp-20F), fnma(n, fill(0x1.62e4p-1F), bounded));
  F32 p = fma(fill(1.37805939e-3F), f, fill(8.37312452e-3F));
  p = fma(p, f, fill(4.16695364e-2F));
  p = fma(p, f, fill(1.66664720e-1F));
  p = fma(p, f, fill(4.99999851e-1F));
  p = fma(p * f, f, f);
  const F32 half = scale(fill(0.5F), n);
  const F32 result = fma(half, p, half - fill(0.5F));
  return select(without_sign(x) > fill(0), result + result, x);
}

/// log(1 + x); 2.5 ulp.
inline F32 ieee_log1p(const F32& x) {
  const F32 sum = fill(1) + x;
  const F32 lost = x - (sum - fill(1));
  const F32 result = log(sum) + divide(lost, sum);
  // Where the quotient is of 0 by 0 or of infinities, or x itself the result.
  const Mask plain = is_less(fill(-1), x) & is_less(x, fill(kInfinite));
  return select(is_equal(x, fill(0)), x, select(plain, result, log(sum)));
}

/// 1 / (1 + e^-x); 3 ulp, 0 below -88.72.
inline F32 ieee_sigmoid(const F32& x) { return divide(fill(1), fill(1) + ieee_exp(flip_sign(x))); }

/// 2 ulp.
inline F32 ieee_tanh(const F32& x) { return select(without_sign(x) > fill(0), tanh(x), x); }

/// 2 ulp.
inline F32 ieee_erf(const F32& x) { return select(without_sign(x) > fill(0), erf(x), x); }

}  // namespace
}  // namespace gallop::kernel
