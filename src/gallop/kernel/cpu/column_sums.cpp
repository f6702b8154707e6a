#include "gallop/kernel/cpu/column_sums.h"

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

void add(const float* from, int64_t rows, int64_t stride, int64_t columns, float* sums) {
  for (int64_t i = 0; i < columns; i += kLanes) {
    const int64_t count = columns - i < kLanes ? columns - i : kLanes;
    F32 sum = fill(0);
    for (int64_t row = 0; row < rows; ++row) sum = sum + load(from + row * stride + i, count);
    store(sums + i, sum, count);
  }
}

}  // namespace

template <>
ColumnSumsBodies make_bodies<ColumnSumsBodies, kIsa>() {
  return {.add = add};
}

}  // namespace gallop::kernel
