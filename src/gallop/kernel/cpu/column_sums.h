#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"

namespace gallop::kernel {

struct ColumnSumsKernels {
  /// sums[i] = the sum over `rows` of from[row * stride + i], for `columns` of them.
  void (*add)(const float* from, int64_t rows, int64_t stride, int64_t columns, float* sums);
};

}  // namespace gallop::kernel
