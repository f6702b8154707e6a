#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// The widest heads.
inline constexpr int64_t kMaxHeadWidth = 256;

/// What attention does besides matrix products, for numbers of one type. "Paired" and "padded" as
/// in layout.h.
template <typename Number>
struct AttentionKernels {
  /// Copies rows into padded ones; `cosines`, if not null, turns pairs (i, i + columns / 2) of each
  /// row by the angles whose cosines and sines lie side by side there, row by row.
  void (*copy)(const Matrix<const Number>& from, const float* cosines, Number* to,
               int64_t to_stride);
  /// weights = exp(scale * (score - largest of the row)), row i having `first_visible + i` columns
  /// (at most all of them) and zeros behind. Gives the sums and their logarithms, largest included.
  void (*softmax)(const Matrix<const float>& scores, float scale, int64_t first_visible,
                  const Matrix<Number>& weights, float* sums, float* log_sums);
  /// to = from / sums, row by row.
  void (*divide)(const float* from, int64_t from_stride, const float* sums,
                 const Matrix<Number>& to);

  /// Sums of a * b, row by row.
  void (*dot)(const Matrix<const Number>& a, const Matrix<const Number>& b, float* sums);
  /// Of transposed scores and gradients of weights [keys, queries]: weights = exp(scale * score -
  /// log_sum), dscores = scale * weights * (dweights - dot), and the dscores with their rows
  /// paired. Column j sees keys up to `first_visible + j` - 1. All five matrices have the padded
  /// sizes of `padded`, and what is beyond the rows and columns of `scores` becomes 0.
  void (*backward)(const Matrix<const float>& scores, const float* dweights, float scale,
                   int64_t first_visible, const float* log_sums, const float* dots,
                   const Matrix<Number>& padded, Number* dscores, Number* dscores_vnni);
  /// to = from, or turned back where there are cosines.
  void (*write)(const float* from, int64_t from_stride, const float* cosines,
                const Matrix<Number>& to);
  /// The same of the transposed of `from`, which is padded.
  void (*write_transposed)(const float* from, int64_t from_stride, const float* cosines,
                           const Matrix<Number>& to);
};

}  // namespace gallop::kernel
