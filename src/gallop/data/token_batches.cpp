#include "gallop/data/token_batches.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/permutation.h"
#include "gallop/base/text.h"
#include "gallop/data/batch_slot.h"

namespace gallop::data {

TokenBatches::TokenBatches(const std::vector<int64_t>& lengths, int64_t context, int64_t max_tokens,
                           uint64_t seed)
    : seed_(seed) {
  std::map<int64_t, std::vector<int64_t>> by_length;
  double real = 0, all = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    by_length[padded_length(std::max<int64_t>(1, lengths[i]), context)].push_back(
        static_cast<int64_t>(i));
    real += static_cast<double>(lengths[i]);
  }
  int64_t waiting = 0;
  for (auto& [length, samples] : by_length) {
    if (length > max_tokens) {
      throw UsageError(
          fmt::format("data.max_tokens is {}, but the longest samples have {} tokens with padding; "
                      "set it to at "
                      "least that, or make data.context smaller",
                      format_count(max_tokens), format_count(by_length.rbegin()->first)));
    }
    const bool is_last = length == by_length.rbegin()->first;
    const int64_t batch = max_tokens / length;
    waiting += static_cast<int64_t>(samples.size());
    for (; waiting >= batch || (is_last && waiting > 0); waiting -= batches_.back()) {
      batches_.push_back(std::min(batch, waiting));
      most_samples_ = std::max(most_samples_, batches_.back());
      all += static_cast<double>(batches_.back() * length);
    }
    groups_.push_back({.batch = batch, .samples = std::move(samples)});
  }
  padding_ = all > 0 ? 1 - real / all : 0;
}

int64_t TokenBatches::least_samples() const {
  return *std::min_element(batches_.begin(), batches_.end());
}

std::vector<int64_t> TokenBatches::batch_order(int64_t epoch) const {
  const int64_t count = batches();
  const Permutation shuffled(seed_, static_cast<uint64_t>(epoch), count);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; ++i) order.push_back(shuffled(i));
  // A complete batch of the longest samples, if there is one.
  const int64_t longest = count > 1 && batches_.back() < groups_.back().batch &&
                                  batches_[batches_.size() - 2] == groups_.back().batch
                              ? count - 2
                              : count - 1;
  std::iter_swap(order.begin(), std::find(order.begin(), order.end(), longest));
  return order;
}

TokenBatches::Order TokenBatches::make(int64_t epoch) const {
  Order by_length, waiting;
  const auto groups = static_cast<int64_t>(groups_.size());
  for (int64_t i = 0; i < groups; ++i) {
    const Group& group = groups_[static_cast<size_t>(i)];
    waiting.insert(waiting.end(), group.samples.begin(), group.samples.end());
    const auto size = static_cast<int64_t>(waiting.size());
    const Permutation shuffled(seed_, static_cast<uint64_t>(epoch * groups + i), size);
    const int64_t used = i + 1 < groups ? size - size % group.batch : size;
    Order left;
    for (int64_t k = 0; k < size; ++k) {
      (k < used ? by_length : left).push_back(waiting[static_cast<size_t>(shuffled(k))]);
    }
    waiting = std::move(left);
  }
  std::vector<int64_t> begins = {0};
  for (const int64_t samples : batches_) begins.push_back(begins.back() + samples);
  Order order;
  for (const int64_t batch : batch_order(epoch)) {
    order.insert(order.end(), by_length.begin() + begins[static_cast<size_t>(batch)],
                 by_length.begin() + begins[static_cast<size_t>(batch) + 1]);
  }
  return order;
}

int64_t TokenBatches::end(int64_t epoch, int64_t position) const {
  const auto ends = ends_.get(epoch, [this](int64_t number) {
    std::vector<int64_t> all;
    int64_t samples = 0;
    for (const int64_t batch : batch_order(number)) {
      samples += batches_[static_cast<size_t>(batch)];
      all.push_back(samples);
    }
    return all;
  });
  return *std::upper_bound(ends->begin(), ends->end(), position);
}

}  // namespace gallop::data
