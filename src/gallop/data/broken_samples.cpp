#include "gallop/data/broken_samples.h"

#include <algorithm>

#include "gallop/data/ordered_samples.h"
#include "gallop/data/sample_order.h"
#include "gallop/data/sampling.h"

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
    const int64_t read = index_at(samples, config.shuffle, order, position);
    const int64_t index = index_in_order(samples, batch.epoch, read);
    indices.push_back(drawn_index(unordered(samples), batch.epoch, index));
  }
  return indices;
}

std::string describe_broken(const Samples& samples, int64_t index) {
  return undrawn(unordered(samples)).describe(index);
}

}  // namespace gallop::data
