#include "gallop/data/length_order.h"

#include <algorithm>
#include <utility>

#include "gallop/base/error.h"
#include "gallop/base/permutation.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/data_config.h"

namespace gallop::data {

namespace {

// Batches whose padding is computed.
constexpr int64_t kBatches = 100;

bool has_lengths(const Samples& samples) { return samples.fields().input().padding.has_value(); }

// The lengths of inputs, read from some of the samples.
class LengthReader {
 public:
  explicit LengthReader(const Samples& samples)
      : samples_(samples), scratch_(samples.make_scratch()) {
    for (const Field& field : samples.fields()) {
      buffers_.push_back(make_rows(field, 1, /*pinned=*/false));
      rows_.push_back(buffers_.back().row(0));
    }
  }

  int64_t most() const { return samples_.fields().input().shape.sizes.front(); }
  // 0 for a broken sample, which takes no place in a batch.
  int64_t operator()(int64_t index) {
    std::vector<int64_t> lengths(rows_.size(), most());
    const bool is_whole = samples_.fill(index, /*epoch=*/0, SampleRow(rows_, lengths), *scratch_);
    return is_whole ? lengths[samples_.fields().input_index()] : 0;
  }
  std::vector<int64_t> all() {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < samples_.size(); ++i) lengths.push_back((*this)(i));
    return lengths;
  }

 private:
  const Samples& samples_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<BatchRows> buffers_;
  std::vector<void*> rows_;
};

// The share of padding in batches of these lengths.
double padding_of(const std::vector<int64_t>& lengths, int64_t batch, int64_t most) {
  double real = 0, all = 0;
  for (size_t begin = 0; begin < lengths.size(); begin += static_cast<size_t>(batch)) {
    const size_t end = std::min(lengths.size(), begin + static_cast<size_t>(batch));
    int64_t longest = 1;
    for (size_t i = begin; i < end; ++i) longest = std::max(longest, lengths[i]);
    for (size_t i = begin; i < end; ++i) real += static_cast<double>(lengths[i]);
    all += static_cast<double>(padded_length(longest, most)) * static_cast<double>(end - begin);
  }
  return 1 - real / all;
}

}  // namespace

LengthOrder::LengthOrder(std::vector<int64_t> lengths, int64_t batch, uint64_t seed)
    : lengths_(std::move(lengths)), batch_(batch), seed_(seed) {}

LengthOrder::Order LengthOrder::make(int64_t epoch) const {
  const auto size = static_cast<int64_t>(lengths_.size());
  const auto length = [&](int64_t sample) { return lengths_[static_cast<size_t>(sample)]; };
  const Permutation shuffled(seed_, static_cast<uint64_t>(epoch), size);
  Order sorted;
  for (int64_t position = 0; position < size; ++position) sorted.push_back(shuffled(position));
  for (int64_t begin = 0; begin < size; begin += kWindow * batch_) {
    const int64_t end = std::min(size, begin + kWindow * batch_);
    std::stable_sort(sorted.begin() + begin, sorted.begin() + end,
                     [&](int64_t a, int64_t b) { return length(a) > length(b); });
  }
  // Batches begin with their longest sample.
  const int64_t whole = size / batch_;
  Order batches;
  if (whole > 0) {
    const Permutation order(seed_, static_cast<uint64_t>(epoch), whole);
    for (int64_t i = 0; i < whole; ++i) batches.push_back(order(i));
    const auto longest =
        std::max_element(batches.begin(), batches.end(), [&](int64_t a, int64_t b) {
          return length(sorted[static_cast<size_t>(a * batch_)]) <
                 length(sorted[static_cast<size_t>(b * batch_)]);
        });
    std::iter_swap(batches.begin(), longest);
  }
  Order result;
  result.reserve(sorted.size());
  for (const int64_t number : batches) {
    result.insert(result.end(), sorted.begin() + number * batch_,
                  sorted.begin() + (number + 1) * batch_);
  }
  result.insert(result.end(), sorted.begin() + whole * batch_, sorted.end());
  return result;
}

void group_by_length(DataModule& module, const DataConfig& config, uint64_t seed) {
  if (!has_lengths(*module.train)) {
    throw UsageError(
        "data.group_by_length is for samples of different lengths, such as separate texts, but all "
        "of these have the same");
  }
  if (!config.shuffle || !config.sampling.is_uniform()) {
    throw UsageError(
        "data.group_by_length has an order of its own; leave data.shuffle and data.sampling at "
        "their defaults");
  }
  put_in_order(module, std::make_shared<LengthOrder>(LengthReader(*module.train).all(),
                                                     config.batch_size, seed));
}

BatchOrder batch_order(const DataConfig& config, uint64_t seed) {
  return {.batch = config.batch_size,
          .shuffle = config.shuffle,
          .group_by_length = config.group_by_length,
          .seed = seed};
}

std::optional<PaddingShare> padding_share(const DataModule& module, const BatchOrder& order) {
  const Samples& samples = *module.split(Part::kTrain);
  if (!has_lengths(samples)) return std::nullopt;
  LengthReader read(samples);
  const int64_t batch = order.batch;
  const int64_t some = std::min(samples.size(), kBatches * batch);
  const Permutation shuffled(order.seed, 0, samples.size());
  std::vector<int64_t> lengths, grouped;
  for (int64_t i = 0; i < some; ++i) lengths.push_back(read(order.shuffle ? shuffled(i) : i));
  const LengthOrder sorted(lengths, batch, order.seed);
  for (int64_t i = 0; i < some; ++i)
    grouped.push_back(lengths[static_cast<size_t>(sorted.index(0, i))]);
  PaddingShare found{.share = padding_of(lengths, batch, read.most()),
                     .grouped = padding_of(grouped, batch, read.most())};
  if (order.group_by_length) found.share = found.grouped;
  return found;
}

}  // namespace gallop::data
