#pragma once

#include <cstdint>

#include "gallop/schedule/schedule.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// How long a run is. Progress counts samples, so that a ragged last batch advances the schedule by
/// what it holds.
struct Length {
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t batches_per_epoch = 0;
  int64_t batch = 0;
  int64_t samples_per_epoch = 0;

  /// From `train.steps`, or from `train.epochs`, whose last part rounds up to a whole batch.
  static Length of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch);

  /// Samples seen after so many updates.
  int64_t samples_after(int64_t updates) const;

  /// The step at which an interval of steps or epochs ends; that of no run for any other.
  int64_t step_of(const Interval& interval) const;

  /// What schedules want to know of it.
  schedule::RunLength for_schedules() const;
};

}  // namespace gallop::train
