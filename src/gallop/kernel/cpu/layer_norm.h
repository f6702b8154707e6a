#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// An fp32 or bf16 array; null where there is none.
struct AnyArray {
  void* data;
  bool bf16;
};

/// What layer_norm() does with [rows, columns]: x, residual and sum of formats such that the sum's
/// is that of x. Without residual, sum is not written. `shift`, which may be null, is added to each
/// row of the residual.
struct LayerNormRows {
  AnyArray x, residual, sum, y;
  const float* shift;
  const float *weight, *bias;
  float *mean, *inverse;
  int64_t rows, columns;
  float eps;
  bool rms;
};

/// What layer_norm_backward() does. dsum and dx have the format of sum.
struct LayerNormGradientRows {
  AnyArray dy, dsum, sum, dx;
  Bf16* narrowed;  ///< dx once more, or null.
  const float* weight;
  const float *mean, *inverse;
  float* sums;  ///< Becomes the gradients of weight, bias and, with shift, that, [2 or 3, columns].
  int64_t rows, columns;
  bool rms, shift;
};

struct LayerNormKernels {
  void (*forward)(const LayerNormRows& rows);
  void (*backward)(const LayerNormGradientRows& rows);
};

}  // namespace gallop::kernel
