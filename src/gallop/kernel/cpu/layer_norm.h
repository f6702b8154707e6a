#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// An fp32 or bf16 array, or null.
struct AnyArray {
  void* data;
  bool bf16;
};

/// The rows of layer_norm(), [rows, columns]: x, residual and sum in formats such that the sum's
/// is that of x. Without residual, sum is not written. `shift`, unless null, is added to each
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

/// The rows of layer_norm_backward(). dsum and dx have the format of sum.
struct LayerNormGradientRows {
  AnyArray dy, dsum, sum, dx;
  Bf16* narrowed;  ///< Gets dx in bf16; may be null.
  const float* weight;
  const float *mean, *inverse;
  float* sums;  ///< Gets the gradients of weight, bias and any shift, [2 or 3, columns].
  int64_t rows, columns;
  bool rms, shift;
};

struct LayerNormKernels {
  void (*forward)(const LayerNormRows& rows);
  void (*backward)(const LayerNormGradientRows& rows);
};

}  // namespace gallop::kernel
