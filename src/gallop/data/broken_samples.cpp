#include "gallop/data/broken_samples.h"

#include <algorithm>

#include "gallop/data/sample_order.h"

namespace gallop::data {

std::vector<int64_t> broken_samples(const Batch& batch, const Samples& samples,
                                    const LoaderConfig& config, int64_t seed) {
  std::vector<int64_t> indices;
  if (batch.skipped == 0) return indices;
  const Permutation order = order_of(samples, seed, batch.epoch);
  const std::vector<int64_t>& kept = batch.row_positions;
  const int64_t end = batch.whole_position + batch.whole_size * (config.part + 1) / config.parts;
  for (int64_t position = batch.position; position < end; ++position) {
    if (std::find(kept.begin(), kept.end(), position) != kept.end()) continue;
    const int64_t index = index_at(samples, config.shuffle, order, position);
    indices.push_back(samples.source_index(batch.epoch, index));
  }
  return indices;
}

std::string describe_broken(const Samples& samples, int64_t index) {
  return samples.source().describe(index);
}

}  // namespace gallop::data
