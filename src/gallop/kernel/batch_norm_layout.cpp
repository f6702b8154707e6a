#include "gallop/kernel/batch_norm_layout.h"

#include <numeric>

#include <ATen/Parallel.h>

#include "gallop/kernel/gemm.h"

namespace gallop::kernel {

namespace {

constexpr int64_t kLeastColumns = 64, kMostColumns = 4096;
constexpr int64_t kMostParts = 64, kLeastRows = 4 * kBatchNormChunk;

}  // namespace

BatchNormLayout::BatchNormLayout(const at::Tensor& x)
    : channels(x.size(1)),
      pixels(x.numel() / channels),
      count(x.numel()),
      columns(std::lcm(channels, kLanes)) {
  while (columns < kLeastColumns) columns *= 2;
  if (columns > kMostColumns) columns = channels;
  row_words = parts_of(columns, kLanes);
  rows = parts_of(count, columns);
  part_rows = std::max(kLeastRows, parts_of(rows, kMostParts * kBatchNormChunk) * kBatchNormChunk);
  parts = parts_of(rows, part_rows);
}

std::vector<double> sum_parts(const BatchNormLayout& layout,
                              const std::function<void(int64_t, float*, double*)>& body) {
  const auto wide = static_cast<size_t>(2 * layout.columns);
  std::vector<double> sums(static_cast<size_t>(layout.parts) * wide);
  at::parallel_for(0, layout.parts, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> scratch(static_cast<size_t>(3 * layout.columns));
    for (int64_t part = begin; part < end; ++part) {
      body(part, scratch.data(), sums.data() + static_cast<size_t>(part) * wide);
    }
  });
  for (size_t i = wide; i < sums.size(); i += wide) {
    for (size_t column = 0; column < wide; ++column) sums[column] += sums[i + column];
  }
  std::vector<double> result(static_cast<size_t>(2 * layout.channels));
  for (int64_t column = 0; column < 2 * layout.columns; ++column) {
    const int64_t half = column / layout.columns;
    const int64_t channel = column % layout.columns % layout.channels;
    result[static_cast<size_t>(half * layout.channels + channel)] +=
        sums[static_cast<size_t>(column)];
  }
  return result;
}

void each_part(const BatchNormLayout& layout, const std::function<void(int64_t)>& body) {
  at::parallel_for(0, layout.parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = end; part-- > begin;) body(part);
  });
}

}  // namespace gallop::kernel
