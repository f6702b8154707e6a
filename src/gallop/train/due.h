#pragma once

#include <cstdint>

#include "gallop/base/clock.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// Says when something that happens every so often is due. Asked only between two steps.
class Due {
 public:
  Due(const Interval& interval, int64_t steps_per_epoch)
      : interval_(interval), steps_per_epoch_(steps_per_epoch) {}

  /// Whether a multiple of the interval lies after the last done() and not after `step`.
  bool at(int64_t step) const {
    switch (interval_.unit) {
      case Interval::Unit::kNever: return false;
      case Interval::Unit::kSeconds: return monotonic_seconds() - done_at_ >= interval_.count;
      case Interval::Unit::kSteps: return multiples(step, 1) > multiples(done_step_, 1);
      case Interval::Unit::kEpochs:
        return multiples(step, steps_per_epoch_) > multiples(done_step_, steps_per_epoch_);
    }
    return false;
  }

  bool is_never() const { return interval_.unit == Interval::Unit::kNever; }

  /// Whether it goes by time, so that processes may differ about it.
  bool is_by_time() const { return interval_.unit == Interval::Unit::kSeconds; }

  void done(int64_t step) {
    done_step_ = step;
    done_at_ = monotonic_seconds();
  }

 private:
  int64_t multiples(int64_t step, int64_t steps_per_unit) const {
    return static_cast<int64_t>(
        static_cast<double>(step) / (interval_.count * static_cast<double>(steps_per_unit)) + 1e-9);
  }

  Interval interval_;
  int64_t steps_per_epoch_;
  int64_t done_step_ = 0;
  double done_at_ = monotonic_seconds();
};

}  // namespace gallop::train
