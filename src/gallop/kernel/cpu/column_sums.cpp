#include "gallop/kernel/cpu/column_sums.h"

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

void add(const float* from, int64_t rows, int64_t stride, int64_t columns, float* sums) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t count = columns - i < kLanes ? columns - i : kLanes;
    // Every eighth row in a sum of its own, which errs less and does not wait.
    F32 parts[8];
    for (F32& part : parts) part = fill(0);
    for (int64_t row = 0; row < rows; ++row) {
      parts[row % 8] = parts[row % 8] + load(from + row * stride + i, count);
    }
    for (int64_t half = 4; half > 0; half /= 2) {
      for (int64_t part = 0; part < half; ++part) parts[part] = parts[part] + parts[part + half];
    }
    store(sums + i, parts[0], count);
  }
}

}  // namespace

template <>
ColumnSumsKernels make_kernels<ColumnSumsKernels, kIsa>() {
  return {.add = add};
}

}  // namespace gallop::kernel
