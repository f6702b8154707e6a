#include "gallop/kernel/cpu/arrays.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

void widen(const Bf16* from, float* to, int64_t count) {
  over_vectors(0, count, [&](int64_t i, auto lanes) { lanes.put(to + i, lanes.get(from + i)); });
}

void add(const Bf16* from, float* to, int64_t count) {
  over_vectors(0, count, [&](int64_t i, auto lanes) {
    lanes.put(to + i, lanes.get(to + i) + lanes.get(from + i));
  });
}

template <typename Number>
void scale_all(Number* numbers, float factor, int64_t count) {
  const F32 f = fill(factor);
  over_vectors(0, count,
               [&](int64_t i, auto lanes) { lanes.put(numbers + i, lanes.get(numbers + i) * f); });
}

}  // namespace

template <>
ArrayKernels make_kernels<ArrayKernels, kIsa>() {
  return {
      .widen = widen, .add = add, .scale_fp32 = scale_all<float>, .scale_bf16 = scale_all<Bf16>};
}

}  // namespace gallop::kernel
