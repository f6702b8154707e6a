#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "gallop/parallel/strategy.h"
#include "gallop/parallel/sums.h"

namespace gallop::train {

/// How processes share a step, as their strategy states it. Without a strategy, one process
/// computes the whole step.
class StepSharing {
 public:
  /// `strategy` may be null; otherwise it must outlive this.
  explicit StepSharing(parallel::Strategy* strategy) : strategy_(strategy) {}

  /// Whether there is a strategy.
  bool is_shared() const { return strategy_ != nullptr; }
  /// Requires is_shared().
  parallel::Strategy& strategy() const { return *strategy_; }
  /// Scope of the collectives of a step; null without a strategy.
  std::unique_ptr<parallel::CollectivesScope> scope() const;

  /// See parallel::Strategy::batch_slices().
  int64_t batch_slices() const;
  /// The number of losses that a step sums up: one of each batch slice, or one.
  size_t losses() const;
  /// The index of the part of a batch that this process computes.
  int batch_part() const;
  /// Whether the losses of this part are counted in this process, and not in another that computes
  /// the same ones.
  bool counts_here() const;
  bool shares_batch_norm() const;
  /// Whether this process takes part in the passes of others without samples.
  bool computes_empty_micro_batches() const;
  /// See parallel::Strategy::sums_each_micro_batch().
  bool sums_each_micro_batch() const;
  /// What synchronizes replicas, if this step's gradients are those of this process alone;
  /// otherwise null.
  const parallel::ModelAverager* local_replicas() const;
  /// Whether other processes have parts of each batch.
  bool divides_batch() const;

 private:
  parallel::Strategy* strategy_;
};

}  // namespace gallop::train
