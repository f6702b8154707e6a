#pragma once

// Functions of vectors. Error bounds are in units in the last place of fp32, found by comparing
// with fp64 over all ranges (tests/unit/kernel/math_test.cpp); without fused multiply-add they are
// about twice as large.

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

/// e^x for x in [-105, 89]; 1.1 ulp.
inline F32 exp_within(F32 x) {
  // x = n ln 2 + f with |f| <= ln 2 / 2, and a polynomial for e^f (minimax).
  const F32 n = round(x * fill(0x1.715476p+0F));
  const F32 f = fnma(n, fill(0x1.7f7d1cp-20F), fnma(n, fill(0x1.62e4p-1F), x));
  F32 p = fma(fill(1.37805939e-3F), f, fill(8.37312452e-3F));
  p = fma(p, f, fill(4.16695364e-2F));
  p = fma(p, f, fill(1.66664720e-1F));
  p = fma(p, f, fill(4.99999851e-1F));
  p = fma(p, f, fill(1));
  p = fma(p, f, fill(1));
  return scale(p, n);
}
/// The same for numbers that are rounded to bf16 in the end; relative error 2^-17, at the ends
/// 2^-16.
inline F32 rough_exp_within(F32 x) {
  const F32 n = round(x * fill(0x1.715476p+0F));
  const F32 f = fnma(n, fill(0x1.62e43p-1F), x);
  F32 p = fma(fill(4.12777554e-2F), f, fill(1.67535155e-1F));
  p = fma(p, f, fill(5.00051161e-1F));
  p = fma(p, f, fill(1));
  p = fma(p, f, fill(1));
  return scale(p, n);
}

/// e^x; 1.1 ulp. 0 below -104, infinity above 88.73.
inline F32 exp(F32 x) { return exp_within(min(max(x, fill(-105)), fill(89))); }

/// As exact as results that become `Number` show.
template <typename Number>
inline F32 exp_within_for(F32 x) {
  return __is_same(Number, Bf16) ? rough_exp_within(x) : exp_within(x);
}

/// The natural logarithm; 0.9 ulp for all x > 0. Of 0 -infinity, below it NaN.
inline F32 log(F32 x) {
  constexpr float kInfinity = __builtin_inff();
  // Numbers below 2^-126 have fewer digits: made larger first.
  const Mask tiny = fill(0x1p-126F) > x;
  F32 n{};
  const F32 f = split(select(tiny, x * fill(0x1p24F), x), n) - fill(1);
  n = n - select(tiny, fill(24), fill(0));
  // log(1 + f) = f - f^2 / 2 + f^3 times a polynomial (minimax).
  F32 p = fma(fill(3.767489269e-02F), f, fill(-9.116529673e-02F));
  p = fma(p, f, fill(1.170083806e-01F));
  p = fma(p, f, fill(-1.272778511e-01F));
  p = fma(p, f, fill(1.427621990e-01F));
  p = fma(p, f, fill(-1.665529311e-01F));
  p = fma(p, f, fill(1.999960542e-01F));
  p = fma(p, f, fill(-2.500016391e-01F));
  p = fma(p, f, fill(3.333334029e-01F));
  const F32 square = f * f;
  // ln 2 in two parts; n times the first is exact.
  F32 rest = fma(p * f, square, n * fill(0x1.7f7d1cp-20F));
  rest = fma(square, fill(-0.5F), rest);
  const F32 value = fma(n, fill(0x1.62e4p-1F), f + rest);
  const F32 end = select(fill(0) > x, fill(__builtin_nanf("")), x - fill(kInfinity));
  return select(x > fill(0), select(fill(kInfinity) > x, value, x), end);
}

/// 1 / (1 + e^-x); 3 ulp from -87 on, 0 below.
inline F32 sigmoid(F32 x) { return inverse(fill(1) + exp(fill(0) - max(x, fill(-87)))); }

inline F32 abs(F32 x) { return max(x, fill(0) - x); }
/// |x| with the sign of y.
inline F32 with_sign(F32 x, F32 y) { return select(fill(0) > y, fill(0) - x, x); }

/// 2 ulp.
inline F32 tanh(F32 x) {
  const F32 size = min(abs(x), fill(10));
  // Near 0 the difference from 1 would have no digits left: a polynomial (Cephes).
  const F32 z = x * x;
  F32 p = fma(fill(-5.70498872745e-3F), z, fill(2.06390887954e-2F));
  p = fma(p, z, fill(-5.37397155531e-2F));
  p = fma(p, z, fill(1.33314422036e-1F));
  p = fma(p, z, fill(-3.33332819422e-1F));
  const F32 small = fma(p * z, x, x);
  const F32 large = fnma(fill(2), quotient(fill(1), fill(1) + exp(size + size)), fill(1));
  return select(size > fill(0.625F), with_sign(large, x), small);
}

/// 2 ulp.
inline F32 erf(F32 x) {
  const F32 size = min(abs(x), fill(4)), square = x * x;
  F32 near = fma(fill(-5.96761703e-4F), square, fill(4.99119423e-3F));
  near = fma(near, square, fill(-2.67681349e-2F));
  near = fma(near, square, fill(1.12819925e-1F));
  near = fma(near, square, fill(-3.76125336e-1F));
  near = fma(near, square, fill(1.28379166e-1F));
  near = fma(near, x, x);
  // 1 - e^(a polynomial).
  const F32 capped = size * size;
  F32 far = fma(fill(-1.72853470e-5F), size, fill(3.83197126e-4F));
  far = fma(far, capped, fma(fill(-3.88396438e-3F), size, fill(2.42546219e-2F)));
  far = fma(far, size, fill(-1.06777877e-1F));
  far = fma(far, size, fill(-6.34846687e-1F));
  far = fma(far, size, fill(-1.28717512e-1F));
  far = fma(far, size, fill(0) - size);
  return select(size > fill(0.921875F), with_sign(fill(1) - exp(far), x), near);
}

}  // namespace
}  // namespace gallop::kernel
