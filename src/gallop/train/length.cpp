#include "gallop/train/length.h"

#include <cmath>
#include <limits>

namespace gallop::train {

Length Length::of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch) {
  const int64_t batches_per_epoch = (samples_per_epoch + batch - 1) / batch;
  Length length{.batches_per_epoch = batches_per_epoch,
                .batch = batch,
                .samples_per_epoch = samples_per_epoch};
  length.steps = config.steps.value_or(static_cast<int64_t>(
      std::ceil(config.epochs * static_cast<double>(batches_per_epoch) - 1e-9)));
  length.samples = length.samples_after(length.steps);
  return length;
}

int64_t Length::samples_after(int64_t updates) const {
  return updates / batches_per_epoch * samples_per_epoch + updates % batches_per_epoch * batch;
}

int64_t Length::step_of(const Interval& interval) const {
  switch (interval.unit) {
    case Interval::Unit::kSteps: return std::llround(interval.count);
    case Interval::Unit::kEpochs:
      return static_cast<int64_t>(
          std::ceil(interval.count * static_cast<double>(batches_per_epoch) - 1e-9));
    default: return std::numeric_limits<int64_t>::max();
  }
}

schedule::RunLength Length::for_schedules() const {
  return {.samples = static_cast<double>(samples),
          .samples_per_epoch = static_cast<double>(samples_per_epoch),
          .batch = static_cast<double>(batch),
          .batches_per_epoch = static_cast<double>(batches_per_epoch)};
}

}  // namespace gallop::train
