#pragma once

#include <cstdint>
#include <memory>

#include "gallop/data/dataset.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// Windows of a text for training: "tokens" [context] int64, and "labels", the same
/// shifted by one token. The windows of an epoch do not overlap and all begin at the same
/// random offset, so that over many epochs every token is seen at every position of the
/// context.
class TextWindows final : public Samples {
 public:
  /// `text` must outlive the samples and have more than `context` tokens, otherwise DataError.
  TextWindows(const TextSet& text, int64_t context, uint64_t seed);

  int64_t size() const override { return size_; }
  bool every_target_counts() const override { return true; }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  const TextSet& text_;
  int64_t context_;
  int64_t size_;
  int64_t offsets_;  ///< The offset of an epoch's first window is in [0, offsets_).
  uint64_t seed_;
};

/// Windows of a text for evaluation, in which every token but the first is predicted exactly once.
/// Positions that another window predicts have the target kIgnoredTarget.
class TextEvaluation final : public Samples {
 public:
  /// Windows begin `stride` tokens apart (0: `context`, no overlap). In all but the first, only the
  /// last `stride` positions count, so that each has at least `context - stride` preceding tokens.
  /// `text` must outlive the samples and have at least 2 tokens, otherwise DataError.
  TextEvaluation(const TextSet& text, int64_t context, int64_t stride);

  int64_t size() const override { return size_; }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  const TextSet& text_;
  int64_t context_;
  int64_t stride_;
  int64_t size_;
};

}  // namespace gallop::data
