#include "gallop/data/block_order.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "gallop/base/permutation.h"
#include "gallop/data/data_config.h"

namespace gallop::data {

BlockOrder::BlockOrder(const std::vector<int64_t>& blocks, int64_t window, uint64_t seed)
    : window_(window), seed_(seed) {
  std::map<int64_t, std::vector<int64_t>> samples;
  for (size_t i = 0; i < blocks.size(); ++i) samples[blocks[i]].push_back(static_cast<int64_t>(i));
  for (auto& [block, indices] : samples) samples_of_.push_back(std::move(indices));
}

BlockOrder::Order BlockOrder::make(int64_t epoch) const {
  const auto blocks = static_cast<int64_t>(samples_of_.size());
  const Permutation shuffled(seed_, static_cast<uint64_t>(epoch), blocks);
  Order order, window;
  for (int64_t begin = 0; begin < blocks; begin += window_) {
    window.clear();
    for (int64_t i = begin; i < std::min(blocks, begin + window_); ++i) {
      const auto& samples = samples_of_[static_cast<size_t>(shuffled(i))];
      window.insert(window.end(), samples.begin(), samples.end());
    }
    constexpr int kEpochBits = 32;
    const uint64_t number = static_cast<uint64_t>(begin / window_) + 1;
    const auto size = static_cast<int64_t>(window.size());
    const Permutation within(seed_, (number << kEpochBits) + static_cast<uint64_t>(epoch), size);
    for (int64_t i = 0; i < size; ++i) order.push_back(window[static_cast<size_t>(within(i))]);
  }
  return order;
}

void order_by_blocks(DataModule& module, const DataConfig& config, uint64_t seed) {
  const Samples& samples = *module.train;
  if (samples.window_blocks() == 0 || !config.shuffle || !config.sampling.is_uniform()) return;
  std::vector<int64_t> blocks;
  for (int64_t i = 0; i < samples.size(); ++i) blocks.push_back(samples.block(i));
  module.notes.push_back(fmt::format(
      "the training data are larger than their share of memory, so they are shuffled within "
      "windows of {} row groups",
      samples.window_blocks()));
  put_in_order(module, std::make_shared<BlockOrder>(blocks, samples.window_blocks(), seed));
}

}  // namespace gallop::data
