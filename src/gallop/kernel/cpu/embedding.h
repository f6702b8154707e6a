#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

struct EmbeddingKernels {
  /// to = a + b, or a copy of a if b is null.
  void (*add_fp32)(const float* a, const float* b, float* to, int64_t count);
  void (*add_bf16)(const Bf16* a, const Bf16* b, Bf16* to, int64_t count);
  /// to[i] = the sum of from[r * stride + i] over the `count` indices r in `rows`.
  void (*sum_fp32)(const float* from, int64_t stride, const int64_t* rows, int64_t count, float* to,
                   int64_t columns);
  void (*sum_bf16)(const Bf16* from, int64_t stride, const int64_t* rows, int64_t count, Bf16* to,
                   int64_t columns);
};

}  // namespace gallop::kernel
