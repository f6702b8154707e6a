#include "gallop/kernel/row_blocks.h"

#include <algorithm>
#include <memory>

#include <ATen/Parallel.h>

#include "gallop/kernel/cpu/column_sums.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kGrain = 16384;
constexpr int64_t kBlocks = 64;  // At most.
constexpr int64_t kRows = 16;    // A block's are a multiple of them.
// Rows that `body` accumulates at once: sums of partial sums are more accurate.
constexpr int64_t kBodyRows = 32;

using Body = std::function<void(int64_t, int64_t, float*)>;

void fill_block(int64_t begin, int64_t end, int64_t count, const Body& body, float* sums) {
  if (end - begin <= kBodyRows) return body(begin, end, sums);
  const int64_t parts = (end - begin + kBodyRows - 1) / kBodyRows;
  // A few parts' sums at a time, behind the sum of all before.
  constexpr int64_t kParts = 16;
  const auto list =
      std::make_unique_for_overwrite<float[]>(static_cast<size_t>((kParts + 1) * count));
  std::fill_n(list.get(), count, 0.0F);
  for (int64_t part = 0; part < parts;) {
    int64_t filled = 1;
    for (; filled <= kParts && part < parts; ++filled, ++part) {
      const int64_t first = begin + part * kBodyRows;
      body(first, std::min(end, first + kBodyRows), list.get() + filled * count);
    }
    best_kernels<ColumnSumsKernels>().add(list.get(), filled, count, count, sums);
    std::copy_n(sums, count, list.get());
  }
}

}  // namespace

int64_t rows_of_grain(int64_t columns) {
  return std::max<int64_t>(kGrain / std::max<int64_t>(columns, 1), 1);
}

std::vector<float> sums_over_rows(int64_t rows, int64_t count, const Body& body) {
  const int64_t size = (std::max(rows / kBlocks, kRows) + kRows - 1) / kRows * kRows;
  const int64_t blocks = (rows + size - 1) / size;
  const auto partial = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(blocks * count));
  const auto fill_blocks = [&](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t last = std::min(rows, (block + 1) * size);
      fill_block(block * size, last, count, body, partial.get() + block * count);
    }
  };
  at::parallel_for(0, blocks, std::max<int64_t>(kGrain / (size * count), 1), fill_blocks);
  std::vector<float> sums(static_cast<size_t>(count));
  const auto& kernels = best_kernels<ColumnSumsKernels>();
  at::parallel_for(0, count, std::max<int64_t>(4 * kGrain / std::max<int64_t>(blocks, 1), 16),
                   [&](int64_t begin, int64_t end) {
                     kernels.add(partial.get() + begin, blocks, count, end - begin,
                                 sums.data() + begin);
                   });
  return sums;
}

}  // namespace gallop::kernel
