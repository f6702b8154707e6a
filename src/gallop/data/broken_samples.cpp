#include "gallop/data/broken_samples.h"

#include <algorithm>

#include "gallop/base/permutation.h"
#include "gallop/data/ordered_samples.h"
#include "gallop/data/sampling.h"

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
    int64_t index = config.shuffle ? order(position) : position;
    if (samples.has_own_order()) index = index_in_order(samples, batch.epoch, position);
    indices.push_back(drawn_index(unordered(samples), batch.epoch, index));
  }
  return indices;
}

std::string describe_broken(const Samples& samples, int64_t index) {
  return undrawn(unordered(samples)).describe(index);
}

}  // namespace gallop::data
