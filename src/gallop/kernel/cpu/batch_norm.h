#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Rows whose sums are taken in fp32 before fp64 takes over.
inline constexpr int64_t kBatchNormChunk = 64;

/// A run of `count` numbers of tensors that are read as rows of `columns` numbers; the last row may
/// be short. Arrays that a body does not name may be null.
template <typename Number>
struct BatchNormPart {
  int64_t count, columns;
  const Number* x;
  const Number* residual;
  Number* y;
  uint16_t* positive;  ///< A bit for each number, in (columns + 15) / 16 words a row.
  const Number* dy;
  const Number* more_dy;  ///< Added to dy.
  Number* g;              ///< The gradient that reaches batch norm's own result.
  Number* dx;
};

/// Constants for each column.
struct BatchNormColumns {
  const float* mean;
  const float *scale, *shift;       ///< y = (x - mean) * scale + shift.
  const float *keep, *slope, *add;  ///< dx = g * keep + (x - mean) * slope + add.
};

/// How the backward pass learns where ReLU let pass.
enum class ReluFrom : uint8_t {
  kNothing,   ///< There is none, or it is in the gradient already.
  kX,         ///< From x, as y is computed.
  kPositive,  ///< From the bits that apply left.
};

template <typename Number>
struct BatchNormKernels {
  /// Adds sums of x - origin, then of their squares, to sums [2, columns]. `scratch` has room for
  /// 3 * columns numbers.
  void (*moments)(const BatchNormPart<Number>& part, const float* origin, float* scratch,
                  double* sums);
  /// y = relu(batch norm of x + residual), both optional, and `positive` where it is not null.
  void (*apply)(const BatchNormPart<Number>& part, const BatchNormColumns& columns, bool relu);
  /// Adds sums of g, then of g * (x - mean), to sums [2, columns], and writes g where it is not
  /// null. `scratch` as above.
  void (*gradient_sums)(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
                        ReluFrom relu, float* scratch, double* sums);
  /// dx from dy, which may be the array itself. `relu` is not kPositive.
  void (*gradient)(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
                   ReluFrom relu);
};

}  // namespace gallop::kernel
