#pragma once

#include <cstdint>
#include <memory>

#include "gallop/data/dataset.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// Target of a position that does not count in the loss.
inline constexpr int64_t kIgnoredTarget = -100;

/// Windows of a text for training: "tokens" [context] int64, and "labels", the same shifted by one
/// token.
/// Windows of an epoch do not overlap and all begin at the same random offset, so that in time
/// every token is seen at every place of the context.
class TextWindows final : public Samples {
 public:
  /// `text` must outlive the samples and have more than `context` tokens, else DataError.
  TextWindows(const TextSet& text, int64_t context, uint64_t seed);

  int64_t size() const override { return size_; }
  bool every_target_counts() const override { return true; }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  const TextSet& text_;
  int64_t context_;
  int64_t size_;
  int64_t offsets_;  ///< Where an epoch's first window may begin: 0 to this, exclusive.
  uint64_t seed_;
};

/// Windows of a text for evaluation: every token but the first is predicted exactly once. Positions
/// that another window counts have the target kIgnoredTarget.
class TextEvaluation final : public Samples {
 public:
  /// Windows begin `stride` tokens apart (0: `context`, no overlap), and in each but the first only
  /// the last `stride` positions count, so that each has at least `context - stride` tokens before
  /// it. `text` must outlive the samples and have at least 2 tokens, else DataError.
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
