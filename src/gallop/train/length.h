#pragma once

#include <cstdint>

#include "gallop/schedule/schedule.h"
#include "gallop/train/batch_history.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// The batch sizes of a run that begins with the first step: those of `train.rampup_batch_size`,
/// and then `batch`. `batches` as for BatchHistory.
BatchHistory new_history(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch,
                         int64_t batches = 0);

/// The length of a run. Progress counts samples, so that a partial last batch advances the schedule
/// by its number of samples, and a resume with another batch size changes neither the end nor the
/// schedule.
struct Length {
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t batches_per_epoch = 0;  ///< From the current step on.
  int64_t batch = 0;              ///< Batch size from the current step on.
  int64_t samples_per_epoch = 0;
  bool is_in_steps = false;  ///< Whether `train.steps` gives the length.
  bool ramps_up = false;     ///< Whether `train.rampup_batch_size` changes the batch size.
  BatchHistory history{1, 1};

  /// The length by `train.steps`, or by `train.epochs`, rounded up to a whole batch.
  static Length of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch);
  /// The length of a run with this history.
  static Length of(const TrainConfig& config, const BatchHistory& history);

  /// Samples after `updates` updates.
  int64_t samples_after(int64_t updates) const;

  /// Epochs after `updates` updates.
  double epochs_after(int64_t updates) const;

  /// The number of complete multiples of `epochs` after `updates` updates.
  int64_t multiples_of_epochs(double epochs, int64_t updates) const;

  /// The progress of schedules, from 0 to 1: the fraction of the run's samples that is done, or of
  /// its steps if they are given and the batch size has changed.
  double progress(int64_t samples_done) const;

  /// The step at which an interval of steps or epochs ends; the maximum of int64_t for any other.
  int64_t step_of(const Interval& interval) const;

  /// The length for schedules. Its steps are those of the initial batch size, so that a schedule
  /// does not change with the batch size.
  schedule::RunLength for_schedules() const;

  /// The length for averages of weights, which count updates.
  schedule::RunLength for_updates() const;

 private:
  int64_t step_of_epochs(double epochs) const;
  int64_t step_of_progress(double share) const;
};

}  // namespace gallop::train
