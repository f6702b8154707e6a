#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

// Layouts of matrices in GEMMs. In a VNNI-packed matrix, rows 2i and 2i + 1 are
// interleaved as bf16 instructions need their right operand; in fp32 it is an ordinary one.
// Matrices called padded have sizes that are multiples of kGemmPad<Number>, with zeros as padding.
namespace gallop::kernel {

/// A matrix in memory: rows of `columns` elements, `stride` apart.
template <typename Number>
struct Matrix {
  Number* data;
  int64_t rows, columns, stride;

  Number* row(int64_t i) const { return data + i * stride; }
};

/// A matrix whose elements are fp32 or bf16.
struct AnyMatrix {
  void* data;
  bool bf16;
  int64_t rows, columns, stride;

  void* at(int64_t row, int64_t column) const {
    return static_cast<char*>(data) + (row * stride + column) * (bf16 ? 2 : 4);
  }
  AnyMatrix part(int64_t row, int64_t row_count, int64_t column, int64_t column_count) const {
    return {at(row, column), bf16, row_count, column_count, stride};
  }
};

template <typename Number>
struct LayoutKernels {
  /// Copies a padded matrix to a VNNI-packed one without gaps.
  void (*pair)(const Matrix<const Number>& from, Number* to);
  void (*transpose)(const Matrix<const Number>& from, Number* to);
  void (*transpose_and_pair)(const Matrix<const Number>& from, Number* to);

  /// Copies to a padded matrix without gaps, which is at least as large; the second one pairs it.
  void (*copy)(const AnyMatrix& from, Number* to, int64_t rows, int64_t columns);
  void (*copy_and_pair)(const AnyMatrix& from, Number* to, int64_t rows, int64_t columns);
};

}  // namespace gallop::kernel
