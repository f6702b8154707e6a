#pragma once

#include <cstdint>

#include "gallop/schedule/schedule.h"
#include "gallop/train/batch_history.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// How long a run is. Progress counts samples, so that a ragged last batch advances the schedule by
/// what it holds, and a resume with another batch size moves neither the end nor the schedule.
struct Length {
  int64_t steps = 0;
  int64_t samples = 0;
  int64_t batches_per_epoch = 0;  ///< From here on.
  int64_t batch = 0;              ///< Also.
  int64_t samples_per_epoch = 0;
  bool is_in_steps = false;  ///< By `train.steps`.
  BatchHistory history{1, 1};

  /// From `train.steps`, or from `train.epochs`, whose last part rounds up to a whole batch.
  static Length of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch);
  /// Of a run with such a past.
  static Length of(const TrainConfig& config, const BatchHistory& history);

  /// Samples seen after so many updates.
  int64_t samples_after(int64_t updates) const;

  /// Epochs done after so many updates.
  double epochs_after(int64_t updates) const;

  /// How many multiples of so many epochs are done then.
  int64_t multiples_of_epochs(double epochs, int64_t updates) const;

  /// What schedules call progress, from 0 to 1: the fraction of the run's samples that is done; of
  /// a run in steps with several batch sizes, of its steps.
  double progress(int64_t samples_done) const;

  /// The step at which an interval of steps or epochs ends; that of no run for any other.
  int64_t step_of(const Interval& interval) const;

  /// What schedules need: steps are those of the batch size that the run began with, so that a
  /// schedule stays as it is where the batch size changes.
  schedule::RunLength for_schedules() const;

  /// What averages of weights need, which count updates.
  schedule::RunLength for_updates() const;

 private:
  int64_t step_of_epochs(double epochs) const;
  int64_t step_of_progress(double share) const;
};

}  // namespace gallop::train
