#include "gallop/data/broken_samples.h"

#include <algorithm>

#include "gallop/base/permutation.h"
#include "gallop/data/ordered_samples.h"

namespace gallop::data {

std::vector<int64_t> broken_samples(const Batch& batch, const Samples& samples,
                                    const LoaderConfig& config, int64_t seed) {
  std::vector<int64_t> indices;
  if (batch.skipped == 0) return indices;
  const Permutation order(static_cast<uint64_t>(seed), static_cast<uint64_t>(batch.epoch),
                          samples.size());
  const std::vector<int64_t>& kept = batch.row_positions;
  const int64_t end = batch.whole_position + batch.whole_size * (config.part + 1) / config.parts;
  for (int64_t position = batch.position; position < end; ++position) {
    if (std::find(kept.begin(), kept.end(), position) != kept.end()) continue;
    if (samples.has_own_order()) {
      indices.push_back(index_in_order(samples, batch.epoch, position));
    } else {
      indices.push_back(config.shuffle ? order(position) : position);
    }
  }
  return indices;
}

}  // namespace gallop::data
