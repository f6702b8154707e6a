#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/ordered_samples.h"

namespace gallop::data {

/// The order of samples that are read in whole blocks, such as row groups of a Parquet file, if
/// only some of the blocks fit in memory: the blocks are shuffled and divided into windows, and the
/// samples of each window are shuffled. A function of (seed, epoch).
class BlockOrder final : public EpochOrder {
 public:
  /// `blocks` has the block of each sample.
  BlockOrder(const std::vector<int64_t>& blocks, int64_t window, uint64_t seed);

 private:
  Order make(int64_t epoch) const override;

  std::vector<std::vector<int64_t>> samples_of_;  // Samples of each block.
  int64_t window_;
  uint64_t seed_;
};

/// Puts the training samples in BlockOrder if they are read in blocks (Samples::window_blocks())
/// and shuffled.
void order_by_blocks(DataModule& module, const DataConfig& config, uint64_t seed);

}  // namespace gallop::data
