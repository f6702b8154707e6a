#include "gallop/data/length_order.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/permutation.h"
#include "gallop/data/batch_slot.h"
#include "gallop/data/data_config.h"
#include "gallop/data/packing.h"
#include "gallop/data/token_batches.h"

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

// Tokens of a batch of these lengths, with padding.
int64_t padded_tokens(std::span<const int64_t> lengths, int64_t most) {
  const int64_t longest = std::max<int64_t>(1, *std::max_element(lengths.begin(), lengths.end()));
  return padded_length(longest, most) * static_cast<int64_t>(lengths.size());
}

int64_t packed_tokens(std::span<const int64_t> lengths, int64_t most) {
  return padded_rows(pack(lengths, most).rows) * most;
}

// The share of padding in batches of these lengths; `tokens_of` is one of the above.
double padding_of(const std::vector<int64_t>& lengths, int64_t batch, int64_t most,
                  int64_t (*tokens_of)(std::span<const int64_t>, int64_t)) {
  double real = 0, all = 0;
  for (size_t begin = 0; begin < lengths.size(); begin += static_cast<size_t>(batch)) {
    const size_t count = std::min(lengths.size() - begin, static_cast<size_t>(batch));
    const auto some = std::span(lengths).subspan(begin, count);
    for (const int64_t length : some) real += static_cast<double>(length);
    all += static_cast<double>(tokens_of(some, most));
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

void limit_tokens(DataModule& module, const DataConfig& config, uint64_t seed) {
  if (!has_lengths(*module.train)) {
    throw UsageError(
        "data.max_tokens is for samples of different lengths, such as separate texts, but all of "
        "these have the same; set data.batch_size");
  }
  if (!config.shuffle || !config.sampling.is_uniform()) {
    throw UsageError(
        "data.max_tokens has an order of its own; leave data.shuffle and data.sampling at their "
        "defaults");
  }
  if (config.group_by_length || config.packing) {
    throw UsageError(
        fmt::format("data.max_tokens makes batches of similar length by itself; leave {} out",
                    config.packing ? "data.packing" : "data.group_by_length"));
  }
  LengthReader read(*module.train);
  auto batches = std::make_shared<TokenBatches>(read.all(), read.most(), config.max_tokens, seed);
  module.batches = batches;
  put_in_order(module, std::move(batches));
}

void check_packing(const DataModule& module, const DataConfig& config) {
  if (!config.packing) return;
  if (!can_pack(module.train->fields())) {
    throw UsageError(
        has_lengths(*module.train)
            ? "data.packing puts several texts into a row, for tasks with a target for each token, "
              "but these texts have one target each; data.group_by_length reduces their padding"
            : "data.packing is for separate texts, such as those of data.name=documents; these "
              "samples all have the same size, and no padding");
  }
  if (config.group_by_length) {
    throw UsageError(
        "data.packing and data.group_by_length both avoid padding, and texts of similar length are "
        "hard to pack; set one of them");
  }
}

BatchOrder batch_order(const DataConfig& config, uint64_t seed) {
  return {.batch = config.batch_size,
          .shuffle = config.shuffle,
          .group_by_length = config.group_by_length,
          .packing = config.packing,
          .max_tokens = config.max_tokens,
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
  const int64_t most = read.most();
  PaddingShare found{.share = padding_of(lengths, batch, most, padded_tokens),
                     .grouped = padding_of(grouped, batch, most, padded_tokens)};
  if (can_pack(samples.fields())) found.packed = padding_of(lengths, batch, most, packed_tokens);
  if (order.group_by_length) found.share = found.grouped;
  if (order.packing) found.share = found.packed.value();
  if (order.max_tokens > 0) {
    found.share = TokenBatches(lengths, most, order.max_tokens, order.seed).padding();
  }
  return found;
}

}  // namespace gallop::data
