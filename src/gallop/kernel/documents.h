#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cpu/layout.h"

namespace gallop::kernel {

/// Consecutive tokens of a row that attend to each other.
struct Document {
  int64_t begin, tokens;

  /// Its rows of a matrix with one row per token.
  template <typename Number>
  Matrix<Number> of(const Matrix<Number>& all) const {
    return {all.row(begin), tokens, all.columns, all.stride};
  }
};

/// The documents of each row of a batch.
class Documents {
 public:
  /// Documents begin where `position_ids_BT` (int64, on the host) is 0; undefined: each row of
  /// `tokens` is one. Throws DataError if positions do not count up from 0.
  Documents(const at::Tensor& position_ids_BT, int64_t rows, int64_t tokens);

  std::span<const Document> of_row(int64_t row) const {
    const auto i = static_cast<size_t>(row);
    return std::span(documents_).subspan(first_[i], first_[i + 1] - first_[i]);
  }
  int64_t longest() const { return longest_; }

 private:
  std::vector<Document> documents_;
  std::vector<size_t> first_;  ///< Index of each row's first document, and their number.
  int64_t longest_ = 0;
};

}  // namespace gallop::kernel
