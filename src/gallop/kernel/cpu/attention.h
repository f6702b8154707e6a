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

/// What attention does besides matrix products, for numbers of one type. A "paired" matrix has its
/// rows 2i and 2i + 1 woven into one, as products in bf16 take their right side; in fp32 it is an
/// ordinary one. An odd last row is paired with zeros.
template <typename Number>
struct AttentionBodies {
  /// Pairs the rows of `from` into `to`, without gaps.
  void (*pair)(const Matrix<const Number>& from, Number* to);
  /// Transposes `from` and pairs the rows of that. Its columns are even.
  void (*transpose_and_pair)(const Matrix<const Number>& from, Number* to);
  /// Transposes `from` into rows `stride` apart.
  void (*transpose)(const Matrix<const Number>& from, Number* to, int64_t stride);
  /// Turns pairs (i, i + columns / 2) of each row; `cosines` and sines side by side, row by row.
  void (*rotate)(const Matrix<const Number>& from, const float* cosines, Number* to);

  /// weights = exp(scale * (score - largest of the row)), row i having `first_visible + i` columns
  /// (at most all of them) and zeros behind. Gives the sums and their logarithms, largest included.
  void (*softmax)(const Matrix<const float>& scores, float scale, int64_t first_visible,
                  const Matrix<Number>& weights, float* sums, float* log_sums);
  /// to = from / sums, row by row.
  void (*divide)(const Matrix<const float>& from, const float* sums, const Matrix<Number>& to);

  /// Sums of a * b, row by row.
  void (*dot)(const Matrix<const Number>& a, const Matrix<const Number>& b, float* sums);
  /// Of transposed scores and gradients of weights [keys, queries]: weights = exp(scale * score -
  /// log_sum), dscores = scale * weights * (dweights - dot), with their rows also paired in
  /// `dscores_paired`. Column j sees keys up to `first_visible + j` - 1.
  void (*backward)(const Matrix<const float>& scores, const float* dweights, float scale,
                   int64_t first_visible, const float* log_sums, const float* dots,
                   const Matrix<Number>& weights, Number* dscores, Number* dscores_paired);
  /// to = from, or turned back by the rotation where there is one.
  void (*write)(const Matrix<const float>& from, const float* cosines, const Matrix<Number>& to);
  /// The transposed of `from`, likewise.
  void (*write_transposed)(const Matrix<const float>& from, const float* cosines,
                           const Matrix<Number>& to);
};

}  // namespace gallop::kernel
