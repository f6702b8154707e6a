#include "gallop/data/sized_batches.h"

#include <algorithm>
#include <map>

namespace gallop::data {

SizedBatches::SizedBatches(const Samples& samples, int64_t batch) {
  std::map<std::vector<int64_t>, std::vector<int64_t>> by_sizes;
  for (int64_t i = 0; i < samples.size(); ++i) by_sizes[samples.input_sizes(i)].push_back(i);
  for (const auto& [sizes, indices] : by_sizes) {
    const auto count = static_cast<int64_t>(indices.size());
    const auto first = static_cast<int64_t>(order_.size());
    for (int64_t begin = 0; begin < count; begin += batch) begins_.push_back(first + begin);
    order_.insert(order_.end(), indices.begin(), indices.end());
    most_samples_ = std::max(most_samples_, std::min(batch, count));
  }
  begins_.push_back(static_cast<int64_t>(order_.size()));
}

int64_t SizedBatches::end(int64_t /*epoch*/, int64_t position) const {
  return *std::upper_bound(begins_.begin(), begins_.end(), position);
}

}  // namespace gallop::data
