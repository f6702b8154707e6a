#include "gallop/kernel/cpu/swiglu.h"

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

template <typename Number>
void forward(const SwigluRows<Number>& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const Number *a = r.x + row * 2 * r.columns, *b = a + r.columns;
    Number* y = r.y + row * r.columns;
    over_vectors(0, r.columns, [&](int64_t i, auto lanes) {
      const F32 gate = lanes.get(a + i);
      lanes.put(y + i, gate * sigmoid(gate) * lanes.get(b + i));
    });
  }
}

template <typename Number>
void backward(const SwigluGradientRows<Number>& r) {
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t offset = row * 2 * r.columns;
    const Number *a = r.x + offset, *b = a + r.columns, *dy = r.dy + row * r.columns;
    Number *da = r.dx + offset, *db = da + r.columns;
    over_vectors(0, r.columns, [&](int64_t i, auto lanes) {
      const F32 gate = lanes.get(a + i), d = lanes.get(dy + i);
      // e s is 1 - s without its cancellation.
      const F32 e = exp(fill(0) - max(gate, fill(-87))), s = inverse(fill(1) + e);
      const F32 slope = fma(gate * (e * s), s, s);
      lanes.put(da + i, d * lanes.get(b + i) * slope);
      lanes.put(db + i, d * (gate * s));
    });
  }
}

}  // namespace

template <>
SwigluKernels make_kernels<SwigluKernels, kIsa>() {
  return {.forward_fp32 = forward<float>,
          .forward_bf16 = forward<Bf16>,
          .backward_fp32 = backward<float>,
          .backward_bf16 = backward<Bf16>};
}

}  // namespace gallop::kernel
