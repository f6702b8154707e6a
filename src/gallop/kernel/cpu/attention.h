#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/bodies.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// A matrix in memory: rows of `columns` numbers, `stride` apart.
template <typename Number>
struct Matrix {
  Number* data;
  int64_t rows, columns, stride;

  Number* row(int64_t i) const { return data + i * stride; }
};

/// The widest heads.
inline constexpr int64_t kMaxHeadWidth = 256;

/// What attention does besides matrix products, for numbers of one type. In a "paired" matrix rows
/// 2i and 2i + 1 are woven into one, as products in bf16 take their right side; in fp32 it is an
/// ordinary one. Matrices called padded have sizes that are multiples of kProductPad<Number>.
template <typename Number>
struct AttentionBodies {
  /// Copies rows into padded ones; `cosines`, if not null, turns pairs (i, i + columns / 2) of each
  /// row by the angles whose cosines and sines lie side by side there, row by row.
  void (*copy)(const Matrix<const Number>& from, const float* cosines, Number* to,
               int64_t to_stride);
  /// Of padded matrices without gaps.
  void (*pair)(const Number* from, int64_t rows, int64_t columns, Number* to);
  void (*transpose)(const Number* from, int64_t rows, int64_t columns, Number* to);
  void (*transpose_and_pair)(const Number* from, int64_t rows, int64_t columns, Number* to);

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
                   const Matrix<Number>& padded, Number* dscores, Number* dscores_paired);
  /// to = from, or turned back where there are cosines.
  void (*write)(const float* from, int64_t from_stride, const float* cosines,
                const Matrix<Number>& to);
  /// The same of the transposed of `from`, which is padded.
  void (*write_transposed)(const float* from, int64_t from_stride, const float* cosines,
                           const Matrix<Number>& to);
};

}  // namespace gallop::kernel
