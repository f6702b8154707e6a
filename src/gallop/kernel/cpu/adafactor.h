#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"

namespace gallop::kernel {

/// Rows of a matrix and of its gradient, contiguous.
struct AdafactorRows {
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float scale = 1;  ///< Factor of the gradient.
  int64_t rows = 0, columns = 0;
  /// The change is scale * gradient * min(row factor * column factor, most), with a factor for each
  /// row and each column; null means factors of 1.
  const float* row_factors = nullptr;
  const float* column_factors = nullptr;
  float most = 0;
};

/// Adafactor's passes.
struct AdafactorKernels {
  /// Sums of squares of the scaled gradient: overwrites `row_sums` and adds to `column_sums`, each
  /// of which may be null. Returns the sum of squares of the parameter.
  double (*squares)(const AdafactorRows& at, float* row_sums, float* column_sums);
  /// The sum of squares of the change.
  double (*change_squares)(const AdafactorRows& at);
  /// parameter = parameter * keep - rate * change
  void (*update)(const AdafactorRows& at, float keep, float rate);
  /// 1 / sqrt(numbers[i]), at most `most`.
  void (*inverse_roots)(const float* numbers, float most, float* roots, int64_t count);
};

}  // namespace gallop::kernel
