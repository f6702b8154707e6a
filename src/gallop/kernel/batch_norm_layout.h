#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cpu/batch_norm.h"

namespace gallop::kernel {

/// A tensor as a matrix whose rows are so many pixels that their numbers fill whole vectors, cut
/// into parts that are the same for any number of threads.
struct BatchNormLayout {
  explicit BatchNormLayout(const at::Tensor& x);

  /// Words of one bit a number, each row's in words of its own.
  int64_t words() const { return rows * row_words; }

  int64_t channels, pixels;
  int64_t count;      ///< Numbers in all.
  int64_t columns;    ///< A multiple of the channels.
  int64_t row_words;  ///< For one bit a number of a row.
  int64_t rows;       ///< The last may be short.
  int64_t part_rows;
  int64_t parts;
};

/// Part number `part` of what `all` has.
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

/// Two sums for each channel, of what `body` adds to sums [2, columns] for each part; its scratch
/// has 3 * columns numbers.
std::vector<double> sum_parts(
    const BatchNormLayout& layout,
    const std::function<void(int64_t part, float* scratch, double* sums)>& body);

/// From the last part to the first: what the pass before read last may lie in the cache.
void each_part(const BatchNormLayout& layout, const std::function<void(int64_t part)>& body);

}  // namespace gallop::kernel
