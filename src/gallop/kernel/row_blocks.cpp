#include "gallop/kernel/row_blocks.h"

#include <algorithm>
#include <memory>

#include <ATen/Parallel.h>

#include "gallop/kernel/cpu/column_sums.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kBlocks = 64;  // At most.
constexpr int64_t kRows = 16;  // Of a block, at least, and a multiple of what kernels take at once.

}  // namespace

int64_t rows_of_grain(int64_t columns) {
  return std::max<int64_t>(kGrain / std::max<int64_t>(columns, 1), 1);
}

std::vector<float> sums_over_rows(int64_t rows, int64_t count,
                                  const std::function<void(int64_t, int64_t, float*)>& body) {
  const int64_t size = (std::max(rows / kBlocks, kRows) + kRows - 1) / kRows * kRows;
  const int64_t blocks = (rows + size - 1) / size;
  const auto partial = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(blocks * count));
  at::parallel_for(
      0, blocks, std::max<int64_t>(kGrain / (size * count), 1), [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; ++block) {
          body(block * size, std::min(rows, (block + 1) * size), partial.get() + block * count);
        }
      });
  std::vector<float> sums(static_cast<size_t>(count));
  const auto& bodies = best_bodies<ColumnSumsBodies>();
  at::parallel_for(0, count, std::max<int64_t>(4 * kGrain / std::max<int64_t>(blocks, 1), 16),
                   [&](int64_t begin, int64_t end) {
                     bodies.add(partial.get() + begin, blocks, count, end - begin,
                                sums.data() + begin);
                   });
  return sums;
}

}  // namespace gallop::kernel
