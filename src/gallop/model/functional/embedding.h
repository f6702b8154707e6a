#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Rows of weight [V, C] at int64 indices [.., T], plus row t of positions [P, C] if defined, with
/// the gradients of both. Uses gallop's kernel if it supports them (kernel/embedding.h), otherwise
/// LibTorch's operators.
at::Tensor embedding(const at::Tensor& indices, const at::Tensor& weight,
                     const at::Tensor& positions = {});

/// What a process that has `rows` rows of a table, from row `begin` on, looks up: row 0 for the
/// indices of other rows, whose results must be multiplied by 0.
struct TablePart {
  at::Tensor indices;  ///< In its part.
  at::Tensor is_here;  ///< bool, [.., 1].
};
TablePart part_of_table(const at::Tensor& indices, int64_t begin, int64_t rows);

}  // namespace gallop::model::functional
