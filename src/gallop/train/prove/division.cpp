#include "gallop/train/prove/division.h"

#include <algorithm>
#include <numeric>

#include "gallop/train/step/seed.h"

namespace gallop::train {

namespace {

// The rows of each micro-batch of a process whose rows begin at `first`.
std::vector<RowRange> micro_batches(const Division& division, int64_t first, int64_t rows) {
  const int64_t count = std::min(division.micro_batches, rows);
  std::vector<RowRange> ranges;
  for (int64_t i = 0; i < count; ++i) {
    ranges.push_back({first + rows * i / count, first + rows * (i + 1) / count});
  }
  return ranges;
}

RowRange slice_of(const Division& division, int64_t slice) {
  const int64_t all = division.whole_rows();
  return {all * slice / division.slices, all * (slice + 1) / division.slices};
}

}  // namespace

int64_t Division::whole_rows() const {
  return std::accumulate(rows.begin(), rows.end(), int64_t{0});
}

std::vector<BatchPart> undivided(const Division& division, uint64_t seed) {
  return {{.seed = seed, .pieces = {{{0, division.whole_rows()}}}}};
}

std::vector<BatchPart> divided(const Division& division, uint64_t seed) {
  std::vector<BatchPart> parts;
  for (int64_t slice = 0; slice < division.slices; ++slice) {
    const RowRange range = slice_of(division, slice);
    if (range.begin == range.end) continue;
    parts.push_back(
        {.seed = dropout_seed(seed, static_cast<uint64_t>(slice)), .pieces = {{range}}});
  }
  if (division.slices > 0) return parts;
  int64_t first = 0;
  std::vector<std::vector<RowRange>> of_ranks;
  for (const int64_t rows : division.rows) {
    of_ranks.push_back(micro_batches(division, first, rows));
    first += rows;
  }
  if (division.shares_batch_norm) {
    // The micro-batches of all processes with one number are normalized together.
    BatchPart all{.seed = seed, .pieces = {}};
    for (size_t i = 0; i < static_cast<size_t>(division.micro_batches); ++i) {
      Rows together;
      for (const auto& ranges : of_ranks) {
        if (i < ranges.size()) together.push_back(ranges[i]);
      }
      if (!together.empty()) all.pieces.push_back(std::move(together));
    }
    return {all};
  }
  for (size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (of_ranks[rank].empty()) continue;
    BatchPart part{.seed = dropout_seed(seed, rank), .pieces = {}};
    for (const RowRange& range : of_ranks[rank]) part.pieces.push_back({range});
    parts.push_back(std::move(part));
  }
  return parts;
}

std::vector<int64_t> rows_of_passes(const Division& division, int64_t rank) {
  std::vector<int64_t> rows;
  if (division.slices > 0) {
    const int64_t each = division.slices / static_cast<int64_t>(division.rows.size());
    for (int64_t slice = rank * each; slice < (rank + 1) * each; ++slice) {
      const RowRange range = slice_of(division, slice);
      if (range.end > range.begin) rows.push_back(range.end - range.begin);
    }
    return rows;
  }
  for (const RowRange& range :
       micro_batches(division, 0, division.rows[static_cast<size_t>(rank)])) {
    rows.push_back(range.end - range.begin);
  }
  return rows;
}

}  // namespace gallop::train
