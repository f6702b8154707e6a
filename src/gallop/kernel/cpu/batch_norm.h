#pragma once

#include <cstdint>

#include "gallop/kernel/batch_norm_activation.h"
#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Number of rows that are summed in fp32 before the sums are added in fp64.
inline constexpr int64_t kBatchNormChunk = 64;

/// A range of `count` elements of tensors that are read as rows of `columns` elements; the last row
/// may be shorter. Arrays that a function does not mention may be null.
template <typename Number>
struct BatchNormPart {
  int64_t count, columns;
  const Number* x;
  const Number* residual;
  Number* y;
  uint16_t* positive;  ///< A bit per element, in (columns + 15) / 16 words per row.
  const Number* dy;
  const Number* more_dy;  ///< Added to dy.
  Number* g;              ///< The gradient of batch norm's own result.
  Number* dx;
};

/// Constants per column.
struct BatchNormColumns {
  const float* mean;
  const float *scale, *shift;       ///< y = (x - mean) * scale + shift.
  const float *keep, *slope, *add;  ///< dx = g * keep + (x - mean) * slope + add.
};

/// The derivative of the activation in the backward pass.
enum class ActivationGradient : uint8_t {
  kNone,      ///< No activation, or one that is already applied to the gradient.
  kPositive,  ///< Of ReLU, from the bits that apply() saved.
  /// From the result of batch norm, recomputed from x.
  kRelu,
  kRelu6,
  kSilu,
  kHardswish,
};

template <typename Number>
struct BatchNormKernels {
  /// Adds sums of x - origin, then of their squares, to sums [2, columns]. `scratch` has
  /// 3 * columns elements.
  void (*moments)(const BatchNormPart<Number>& part, const float* origin, float* scratch,
                  double* sums);
  /// y = activation(batch norm of x + residual), both optional, and `positive` unless it is null. A
  /// residual and `positive` need ReLU or no activation.
  void (*apply)(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
                BatchNormActivation activation);
  /// Adds sums of g, then of g * (x - mean), to sums [2, columns], and writes g unless it is
  /// null. `scratch` has 3 * columns elements.
  void (*gradient_sums)(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
                        ActivationGradient activation, float* scratch, double* sums);
  /// Computes dx from dy; both may be the same array. `activation` must not be kPositive.
  void (*gradient)(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
                   ActivationGradient activation);
};

}  // namespace gallop::kernel
