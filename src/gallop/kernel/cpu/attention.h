#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// Maximum head dimension.
inline constexpr int64_t kMaxHeadWidth = 256;

/// The steps of attention other than GEMMs, for elements of one type. "Paired" and "padded" as
/// in layout.h.
template <typename Number>
struct AttentionKernels {
  /// Copies rows into padded ones. If `cosines` is not null, rotates pairs (i, i + columns / 2) of
  /// each row by the angles whose cosines and sines are concatenated there, row by row.
  void (*copy)(const Matrix<const Number>& from, const float* cosines, Number* to,
               int64_t to_stride);
  /// weights = exp(scale * (score - maximum of the row)), where row i has `first_visible + i`
  /// columns (at most all) followed by zeros. Returns each row's sum and its log-sum-exp.
  void (*softmax)(const Matrix<const float>& scores, float scale, int64_t first_visible,
                  const Matrix<Number>& weights, float* sums, float* log_sums);
  /// to = from / sums, row by row.
  void (*divide)(const float* from, int64_t from_stride, const float* sums,
                 const Matrix<Number>& to);

  /// Sums of a * b over each row.
  void (*dot)(const Matrix<const Number>& a, const Matrix<const Number>& b, float* sums);
  /// For transposed scores and gradients of weights [keys, queries]: weights = exp(scale * score -
  /// log_sum), dscores = scale * weights * (dweights - dot), and the dscores again with their rows
  /// VNNI-packed. Column j attends to keys before `first_visible + j`. All five matrices have the
  /// padded sizes of `padded`, and elements beyond the rows and columns of `scores` become 0.
  void (*backward)(const Matrix<const float>& scores, const float* dweights, float scale,
                   int64_t first_visible, const float* log_sums, const float* dots,
                   const Matrix<Number>& padded, Number* dscores, Number* dscores_vnni);
  /// to = from, rotated back unless `cosines` is null.
  void (*write)(const float* from, int64_t from_stride, const float* cosines,
                const Matrix<Number>& to);
  /// As write(), for the transpose of `from`, which is padded.
  void (*write_transposed)(const float* from, int64_t from_stride, const float* cosines,
                           const Matrix<Number>& to);
};

}  // namespace gallop::kernel
