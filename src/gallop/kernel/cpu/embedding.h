#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

struct EmbeddingKernels {
  /// to = a + b; without b a copy of a.
  void (*add_fp32)(const float* a, const float* b, float* to, int64_t count);
  void (*add_bf16)(const Bf16* a, const Bf16* b, Bf16* to, int64_t count);
  /// to[i] = the sum over `rows` numbers r of from[r * stride + i], for `columns` of them.
  void (*sum_fp32)(const float* from, int64_t stride, const int64_t* rows, int64_t count, float* to,
                   int64_t columns);
  void (*sum_bf16)(const Bf16* from, int64_t stride, const int64_t* rows, int64_t count, Bf16* to,
                   int64_t columns);
};

}  // namespace gallop::kernel
