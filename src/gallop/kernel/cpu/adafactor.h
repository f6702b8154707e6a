#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"

namespace gallop::kernel {

/// Rows of a matrix and of its gradient, contiguous.
struct AdafactorRows {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float scale = 1;  ///< What the gradient is multiplied by.
  int64_t rows = 0, columns = 0;
  /// The change is scale * gradient * min(row * column, most), with a number for each row and each
  /// column; a null pointer stands for ones.
  const float* row_factors = nullptr;
  const float* column_factors = nullptr;
  float most = 0;
};

/// Adafactor's passes.
struct AdafactorKernels {
  /// Squares of the scaled gradient, summed: put to `row_sums`, added to `column_sums`; each may be
  /// null. Returns those of the parameter.
  double (*squares)(const AdafactorRows& at, float* row_sums, float* column_sums);
  /// The sum of the squares of the change.
  double (*change_squares)(const AdafactorRows& at);
  /// parameter = parameter * keep - rate * change
  void (*update)(const AdafactorRows& at, float keep, float rate);
  /// 1 / sqrt(numbers[i]), at most `most`.
  void (*inverse_roots)(const float* numbers, float most, float* roots, int64_t count);
};

}  // namespace gallop::kernel
