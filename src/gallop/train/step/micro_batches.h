#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/sharing.h"

namespace gallop::train {

/// Rows [begin, end) of this process's part of a batch.
struct MicroBatch {
  int64_t begin = 0, end = 0;
  int64_t slice = 0;  ///< The index of its batch slice; 0 without slices.

  bool is_empty() const { return begin == end; }
};

/// How a step divides batches into micro-batches: as many as gradient accumulation requires, times
/// the splits that save memory; or the batch slices of a strategy.
class MicroBatches {
 public:
  /// Both must outlive this.
  MicroBatches(const StepConfig& config, const StepSharing& sharing);

  /// Whether the loss compares the samples of all processes, which gather them.
  bool gathers_rows() const { return gathers_rows_; }

  /// Rows of the whole batch of the current step, in all processes.
  int64_t whole_rows() const { return whole_rows_; }
  void set_whole_rows(int64_t rows) { whole_rows_ = rows; }

  /// The number of parts into which each micro-batch has been split to save memory.
  int64_t splits() const { return splits_; }
  void set_splits(int64_t splits) { splits_ = splits; }

  /// The number of micro-batches of a batch with enough rows.
  int64_t most() const { return config_.gradient_accumulation * splits_; }
  /// Those of a batch of `rows` rows in this process. With batch slices, these are the slices of
  /// this process in order, including empty ones.
  std::vector<MicroBatch> of(int64_t rows) const;
  /// The tensors of all micro-batches of a batch.
  std::vector<NamedTensors> slices_of(const NamedTensors& batch) const;

 private:
  const StepConfig& config_;
  const StepSharing& sharing_;
  bool gathers_rows_;
  int64_t whole_rows_ = 0;
  int64_t splits_ = 1;
};

}  // namespace gallop::train
