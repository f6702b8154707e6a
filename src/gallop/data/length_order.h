#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "gallop/data/ordered_samples.h"

namespace gallop::data {

/// Batches of samples of similar length, as fastai's SortedDL: a permutation of (seed, epoch) is
/// cut into windows of 50 batches, each sorted by length, and the batches of all windows are
/// delivered in random order, but the longest first, so that a batch that does not fit memory is
/// the first one, and an incomplete batch last.
class LengthOrder final : public EpochOrder {
 public:
  static constexpr int64_t kWindow = 50;

  LengthOrder(std::vector<int64_t> lengths, int64_t batch, uint64_t seed);

  int64_t size() const { return static_cast<int64_t>(lengths_.size()); }

 private:
  Order make(int64_t epoch) const override;

  std::vector<int64_t> lengths_;
  int64_t batch_;
  uint64_t seed_;
};

/// Puts the training samples in the order of LengthOrder. Throws UsageError if samples have no
/// lengths, or the options contradict it.
void group_by_length(DataModule& module, const DataConfig& config, uint64_t seed);

/// Throws UsageError if `data.packing` is set and samples cannot be packed, or the options
/// contradict it.
void check_packing(const DataModule& module, const DataConfig& config);

/// The share of padding in the first training batches, of at most 100.
struct PaddingShare {
  double share = 0;                ///< As the batches are.
  double grouped = 0;              ///< With `data.group_by_length`.
  std::optional<double> packed{};  ///< With `data.packing`, if that is possible.
};

/// Divides the training samples into batches of at most `data.max_tokens` tokens; see TokenBatches.
/// Throws UsageError if samples have no lengths, or the options contradict it.
void limit_tokens(DataModule& module, const DataConfig& config, uint64_t seed);

/// What the batches of a training depend on.
struct BatchOrder {
  int64_t batch = 1;
  bool shuffle = true;
  bool group_by_length = false;
  bool packing = false;
  int64_t max_tokens = 0;
  uint64_t seed = 0;
};

BatchOrder batch_order(const DataConfig& config, uint64_t seed);

/// Empty if samples have no lengths.
std::optional<PaddingShare> padding_share(const DataModule& module, const BatchOrder& order);

}  // namespace gallop::data
