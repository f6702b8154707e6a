#pragma once

// Functions of vectors whose ends are those of IEEE 754: NaN in, NaN out; infinities; the sign of
// 0. Error bounds as in math.h (tests/unit/kernel/math_more_test.cpp).

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/simd_more.h"

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

/// The natural logarithm; 1.5 ulp. -infinity at 0, NaN below.
inline F32 ieee_log(const F32& x) {
  F32 m, e;
  split(x, m, e);
  const Mask large = m > fill(1.41421356F);
  m = select(large, m * fill(0.5F), m);
  e = select(large, e + fill(1), e);
  // log(1 + f) by a polynomial (Cephes), log 2 in two parts.
  const F32 f = m - fill(1), z = f * f;
  F32 p = fma(fill(7.0376836292e-2F), f, fill(-1.1514610310e-1F));
  p = fma(p, f, fill(1.1676998740e-1F));
  p = fma(p, f, fill(-1.2420140846e-1F));
  p = fma(p, f, fill(1.4249322787e-1F));
  p = fma(p, f, fill(-1.6668057665e-1F));
  p = fma(p, f, fill(2.0000714765e-1F));
  p = fma(p, f, fill(-2.4999993993e-1F));
  p = fma(p, f, fill(3.3333331174e-1F));
  F32 result = fma(e, fill(-2.12194440e-4F), p * f * z);
  result = fma(e, fill(0.693359375F), fma(z, fill(-0.5F), result) + f);
  result = select(is_less(x, fill(kInfinite)), result, x);
  result = select(is_equal(x, fill(0)), fill(-kInfinite), result);
  return select(is_less(x, fill(0)), fill(__builtin_nanf("")), result);
}

/// log(1 + x); 2.5 ulp.
inline F32 ieee_log1p(const F32& x) {
  const F32 sum = fill(1) + x;
  const F32 lost = x - (sum - fill(1));
  const F32 result = ieee_log(sum) + divide(lost, sum);
  // Where the quotient is of 0 by 0 or of infinities, or x itself the result.
  const Mask plain = is_less(fill(-1), x) & is_less(x, fill(kInfinite));
  return select(is_equal(x, fill(0)), x, select(plain, result, ieee_log(sum)));
}

/// 1 / (1 + e^-x); 3 ulp, 0 below -88.72.
inline F32 ieee_sigmoid(const F32& x) { return divide(fill(1), fill(1) + ieee_exp(flip_sign(x))); }

/// 2 ulp.
inline F32 ieee_tanh(const F32& x) { return select(without_sign(x) > fill(0), tanh(x), x); }

/// 2 ulp.
inline F32 ieee_erf(const F32& x) { return select(without_sign(x) > fill(0), erf(x), x); }

}  // namespace
}  // namespace gallop::kernel
