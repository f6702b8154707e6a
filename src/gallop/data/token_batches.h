#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/data/batch_plan.h"
#include "gallop/data/ordered_samples.h"

namespace gallop::data {

/// Batches with a bounded number of tokens, padding included, as fairseq's `--max-tokens`. Samples
/// are grouped by the length that batches are padded to (padded_length()), and a batch has as many
/// of a group as fit, in random order. Those that are left over, fewer than a batch, are padded to
/// the next longer group, so that only the last batch of the longest group is incomplete, and there
/// is one shape per length. A function of (seed, epoch); the number of batches is that of every
/// epoch. The batch of the longest samples is the first one.
class TokenBatches final : public EpochOrder, public BatchPlan {
 public:
  /// `lengths` of all samples, at most `context`. Throws UsageError if a sample exceeds
  /// `max_tokens`.
  TokenBatches(const std::vector<int64_t>& lengths, int64_t context, int64_t max_tokens,
               uint64_t seed);

  int64_t end(int64_t epoch, int64_t position) const override;
  int64_t batches() const override { return static_cast<int64_t>(batches_.size()); }
  int64_t most_samples() const override { return most_samples_; }
  int64_t least_samples() const;
  /// The share of padding in the batches.
  double padding() const { return padding_; }

 private:
  // Samples that are padded to one length.
  struct Group {
    int64_t batch = 0;             // Samples in a complete batch.
    std::vector<int64_t> samples;  // Without those left over by shorter groups.
  };
  Order make(int64_t epoch) const override;
  // Batches by their place in an epoch: indices of `batches_`.
  std::vector<int64_t> batch_order(int64_t epoch) const;

  std::vector<Group> groups_;     // By length.
  std::vector<int64_t> batches_;  // The number of samples of each, by length.
  uint64_t seed_;
  int64_t most_samples_ = 0;
  double padding_ = 0;
  PerEpoch<std::vector<int64_t>> ends_;
};

}  // namespace gallop::data
