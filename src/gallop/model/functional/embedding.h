#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Rows of weight [V, C] at int64 indices [.., T], plus row t of positions [P, C] if defined, with
/// the gradients of both. Uses gallop's kernel if it supports them (kernel/embedding.h), otherwise
/// LibTorch's operators.
at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions = {});

/// What a process that has `rows` of the `all_rows` rows of a table, from row `begin` on, looks up:
/// row 0 for the indices of other rows.
struct TablePart {
  at::Tensor indices;  ///< In its part.
  /// [.., 1], by which results must be multiplied: 1, 0 for other rows, and NaN for indices that
  /// are no row of the table; an error would need the values on a GPU.
  at::Tensor factors;
};
TablePart part_of_table(const at::Tensor& indices, int64_t begin, int64_t rows, int64_t all_rows,
                        at::ScalarType type);

}  // namespace gallop::model::functional
