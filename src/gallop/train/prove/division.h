#pragma once

#include <cstdint>
#include <vector>

#include "gallop/train/prove/plain_step.h"

namespace gallop::train {

/// How the processes of a training divide a batch.
struct Division {
  std::vector<int64_t> rows;       ///< Of each process, in the order of ranks; not empty.
  int64_t micro_batches = 1;       ///< Of each process.
  int64_t slices = 0;              ///< parallel::Strategy::batch_slices().
  bool shares_batch_norm = false;  ///< parallel::Strategy::shares_batch_norm().

  int64_t whole_rows() const;
};

/// The whole batch at once.
std::vector<BatchPart> undivided(const Division& division, uint64_t seed);

/// The parts in which a training computes a batch, for models whose results depend on that: with
/// batch norm, dropout, or a fixed number of samples.
std::vector<BatchPart> divided(const Division& division, uint64_t seed);

/// The rows of each forward pass of one process, in order; some may be empty.
std::vector<int64_t> rows_of_passes(const Division& division, int64_t rank);

}  // namespace gallop::train
