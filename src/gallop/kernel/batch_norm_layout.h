#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cpu/batch_norm.h"

namespace gallop::kernel {

/// A tensor as a matrix whose rows hold as many pixels as fill whole vectors, split
/// into parts that are the same for any number of threads.
struct BatchNormLayout {
  explicit BatchNormLayout(const at::Tensor& x);

  /// Number of words for one bit per element; each row begins with a new word.
  int64_t words() const { return rows * row_words; }

  int64_t channels, pixels;
  int64_t count;      ///< Number of elements.
  int64_t columns;    ///< A multiple of the channels.
  int64_t row_words;  ///< Words for one bit per element of a row.
  int64_t rows;       ///< The last row may be shorter.
  int64_t part_rows;
  int64_t parts;
};

/// Part `part` of the arrays of `all`.
template <typename Number>
BatchNormPart<Number> part_of(BatchNormPart<Number> all, const BatchNormLayout& layout,
                              int64_t part) {
  const int64_t row = part * layout.part_rows, at = row * layout.columns;
  const auto advance = [](auto*& array, int64_t by) {
    if (array != nullptr) array += by;
  };
  all.columns = layout.columns;
  all.count = std::min(layout.part_rows * layout.columns, layout.count - at);
  advance(all.x, at);
  advance(all.residual, at);
  advance(all.y, at);
  advance(all.positive, row * layout.row_words);
  advance(all.dy, at);
  advance(all.more_dy, at);
  advance(all.g, at);
  advance(all.dx, at);
  return all;
}

/// Two sums for each channel: `body` adds its part to sums [2, columns], and its scratch
/// has 3 * columns elements.
std::vector<double> sum_parts(
    const BatchNormLayout& layout,
    const std::function<void(int64_t part, float* scratch, double* sums)>& body);

/// Visits the parts in reverse: the data that the previous pass read last may still be cached.
void each_part(const BatchNormLayout& layout, const std::function<void(int64_t part)>& body);

}  // namespace gallop::kernel
