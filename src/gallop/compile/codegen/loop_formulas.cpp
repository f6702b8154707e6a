#include <cmath>
#include <numbers>

#include "gallop/compile/codegen/loop_builder.h"

namespace gallop::compile {

namespace {

Value zero(LoopBuilder& b, Value like) { return b.constant(0, b.kind(like)); }
Value one(LoopBuilder& b, Value like) { return b.constant(1, b.kind(like)); }
Value times(LoopBuilder& b, Value x, Value y) { return b.apply(Op::kMultiply, x, y); }
Value times(LoopBuilder& b, Value x, double y) { return b.apply(Op::kMultiply, x, y); }
Value plus(LoopBuilder& b, Value x, Value y) { return b.apply(Op::kAdd, x, y); }
Value plus(LoopBuilder& b, Value x, double y) { return b.apply(Op::kAdd, x, y); }
Value minus(LoopBuilder& b, Value x, Value y) { return b.apply(Op::kSubtract, x, y); }

// y if the comparison of x with the limit is true, else `other`.
Value where(LoopBuilder& b, Op comparison, Value x, double limit, Value y, Value other) {
  return b.select(b.apply(comparison, x, limit), y, other);
}

// 2 u of 0.5 (1 + tanh u) = 1 / (1 + e^(-2 u)).
Value twice_u(LoopBuilder& b, Value x) {
  constexpr double kBeta = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  const Value cube = times(b, times(b, x, x), x);
  return times(b, plus(b, x, times(b, cube, 0.044715)), kBeta);
}

}  // namespace

Value silu(LoopBuilder& b, Value x) { return times(b, x, b.apply(Op::kSigmoid, x)); }

Value silu_gradient(LoopBuilder& b, Value dy, Value x) {
  const Value s = b.apply(Op::kSigmoid, x);
  const Value slope = times(b, s, plus(b, times(b, x, minus(b, one(b, x), s)), one(b, x)));
  return times(b, dy, slope);
}

Value gelu(LoopBuilder& b, Value x) {
  const Value cdf = plus(b, b.apply(Op::kErf, times(b, x, std::numbers::sqrt2 / 2)), 1);
  return times(b, times(b, x, 0.5), cdf);
}

Value gelu_gradient(LoopBuilder& b, Value dy, Value x) {
  constexpr double kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  const Value cdf =
      times(b, plus(b, b.apply(Op::kErf, times(b, x, std::numbers::sqrt2 / 2)), 1), 0.5);
  const Value density = times(b, b.apply(Op::kExp, times(b, times(b, x, x), -0.5)), kDensity);
  return times(b, dy, plus(b, cdf, times(b, x, density)));
}

Value gelu_tanh(LoopBuilder& b, Value x) {
  return times(b, x, b.apply(Op::kSigmoid, twice_u(b, x)));
}

Value gelu_tanh_gradient(LoopBuilder& b, Value dy, Value x) {
  constexpr double kBeta = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  // 1 - s would cancel; x^3 and e^(-2 u) would overflow. x - x is NaN only for infinities.
  const Value bounded = clamp(b, x, -30, 30);
  const Value minus_2u = b.apply(Op::kNegate, twice_u(b, bounded));
  const Value e = b.apply(Op::kExp, b.apply(Op::kClampMax, minus_2u, 80));
  const Value s = b.apply(Op::kReciprocal, plus(b, e, 1));
  const Value du = plus(b, times(b, times(b, bounded, bounded), 3 * 0.044715 * kBeta), kBeta);
  const Value bend =
      plus(b, times(b, times(b, times(b, times(b, e, s), s), bounded), du), minus(b, x, x));
  return times(b, dy, plus(b, s, bend));
}

Value threshold(LoopBuilder& b, Value x, double threshold, double value) {
  return where(b, Op::kLessEqual, x, threshold, b.constant(value, b.kind(x)), x);
}

Value threshold_gradient(LoopBuilder& b, Value dy, Value x, double threshold) {
  return where(b, Op::kLessEqual, x, threshold, zero(b, dy), dy);
}

Value clamp(LoopBuilder& b, Value x, double low, double high) {
  return b.apply(Op::kClampMax, b.apply(Op::kClampMin, x, low), high);
}

Value clamp_gradient(LoopBuilder& b, Value dy, Value x, double low, double high) {
  const Value inside =
      b.apply(Op::kAnd, b.apply(Op::kGreaterEqual, x, low), b.apply(Op::kLessEqual, x, high));
  return b.select(inside, dy, zero(b, dy));
}

Value leaky_relu(LoopBuilder& b, Value x, double slope) {
  return where(b, Op::kGreater, x, 0, x, times(b, x, slope));
}

Value leaky_relu_gradient(LoopBuilder& b, Value dy, Value x, double slope) {
  return where(b, Op::kGreater, x, 0, dy, times(b, dy, slope));
}

Value elu(LoopBuilder& b, Value x, double alpha, double scale, double input_scale) {
  const Value below = times(b, b.apply(Op::kExpm1, times(b, x, input_scale)), alpha * scale);
  return where(b, Op::kLess, x, 0, below, times(b, x, scale));
}

Value elu_gradient(LoopBuilder& b, Value dy, Value x, double alpha, double scale,
                   double input_scale) {
  const Value growth = b.apply(Op::kExp, times(b, x, input_scale));
  const Value below = times(b, times(b, dy, input_scale * alpha * scale), growth);
  return where(b, Op::kGreater, x, 0, times(b, dy, scale), below);
}

Value softplus(LoopBuilder& b, Value x, double beta, double threshold) {
  const Value scaled = times(b, x, beta);
  const Value log = b.apply(Op::kLog1p, b.apply(Op::kExp, scaled));
  return where(b, Op::kGreater, scaled, threshold, x, b.apply(Op::kDivide, log, beta));
}

Value softplus_gradient(LoopBuilder& b, Value dy, Value x, double beta, double threshold) {
  const Value scaled = times(b, x, beta);
  const Value slope = times(b, dy, b.apply(Op::kSigmoid, scaled));
  return where(b, Op::kGreater, scaled, threshold, dy, slope);
}

Value hardsigmoid(LoopBuilder& b, Value x) {
  return b.apply(Op::kDivide, clamp(b, plus(b, x, 3), 0, 6), 6);
}

Value hardsigmoid_gradient(LoopBuilder& b, Value dy, Value x) {
  const Value inside = b.apply(Op::kAnd, b.apply(Op::kGreater, x, -3), b.apply(Op::kLess, x, 3));
  return b.select(inside, times(b, dy, 1.0 / 6), zero(b, dy));
}

Value hardswish(LoopBuilder& b, Value x) {
  return b.apply(Op::kDivide, times(b, x, clamp(b, plus(b, x, 3), 0, 6)), 6);
}

Value hardswish_gradient(LoopBuilder& b, Value dy, Value x) {
  const Value between = times(b, dy, plus(b, b.apply(Op::kDivide, x, 3), 0.5));
  return where(b, Op::kLessEqual, x, -3, zero(b, dy),
               where(b, Op::kGreaterEqual, x, 3, dy, between));
}

Value mish(LoopBuilder& b, Value x) {
  return times(b, x, b.apply(Op::kTanh, b.apply(Op::kLog1p, b.apply(Op::kExp, x))));
}

}  // namespace gallop::compile
