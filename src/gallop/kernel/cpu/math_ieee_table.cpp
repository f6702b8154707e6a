#include "gallop/kernel/cpu/math_ieee_table.h"

#include "gallop/kernel/cpu/math_ieee.h"

namespace gallop::kernel {
namespace {

template <auto kFunction>
void unary(const float* x, float* y) {
  store(y, kFunction(load(x)));
}
template <auto kFunction>
void binary(const float* a, const float* b, float* y) {
  store(y, kFunction(load(a), load(b)));
}
template <auto kFunction>
void comparison(const float* a, const float* b, float* y) {
  store(y, select(kFunction(load(a), load(b)), fill(1), fill(0)));
}

}  // namespace

template <>
MathIeeeTable make_kernels<MathIeeeTable, kIsa>() {
  return {.exp = unary<ieee_exp>,
          .expm1 = unary<ieee_expm1>,
          .log1p = unary<ieee_log1p>,
          .sigmoid = unary<ieee_sigmoid>,
          .tanh = unary<ieee_tanh>,
          .erf = unary<ieee_erf>,
          .round_down = unary<round_down>,
          .round_up = unary<round_up>,
          .round_to_zero = unary<round_to_zero>,
          .flip_sign = unary<flip_sign>,
          .without_sign = unary<without_sign>,
          .as_bf16 = unary<as_bf16>,
          .exact_root = unary<exact_root>,
          .max = binary<ieee_max>,
          .min = binary<ieee_min>,
          .divide = binary<divide>,
          .with_sign_of = binary<with_sign_of>,
          .is_equal = comparison<is_equal>,
          .is_less = comparison<is_less>,
          .is_less_equal = comparison<is_less_equal>,
          .differ = [](const uint8_t* a, const uint8_t* b, uint8_t* y, int64_t n) {
            store_mask(y, load_mask(a, n) ^ load_mask(b, n), n);
          }};
}

}  // namespace gallop::kernel
