#include "gallop/kernel/cpu/average.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Calls put(offset, lanes, the new average). Interpolates from the nearer end, as at::lerp, so
// that a share of 1 gives exactly the value.
template <typename Number, typename Put>
inline void over_averages(const float* average, const Number* value, float share, int64_t count,
                          const Put& put) {
  if (share < 0.5F) {
    const F32 w = fill(share);
    over_vectors(0, count, [&](int64_t i, auto lanes) {
      const F32 a = lanes.get(average + i), b = lanes.get(value + i);
      put(i, lanes, fma(w, b - a, a));
    });
  } else {
    const F32 w = fill(share - 1);
    over_vectors(0, count, [&](int64_t i, auto lanes) {
      const F32 a = lanes.get(average + i), b = lanes.get(value + i);
      put(i, lanes, fma(w, b - a, b));
    });
  }
}

template <typename Number>
void move_average(float* average, const Number* value, float share, int64_t count) {
  over_averages(average, value, share, count,
                [&](int64_t i, auto lanes, F32 next) { lanes.put(average + i, next); });
}

void move_both(float* average, float* value, float share, int64_t count) {
  over_averages(average, value, share, count, [&](int64_t i, auto lanes, F32 next) {
    lanes.put(average + i, next);
    lanes.put(value + i, next);
  });
}

}  // namespace

template <>
AverageKernels make_kernels<AverageKernels, kIsa>() {
  return {.average = move_average<float>,
          .average_bf16 = move_average<Bf16>,
          .average_both = move_both};
}

}  // namespace gallop::kernel
