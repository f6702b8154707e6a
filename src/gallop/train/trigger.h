#pragma once

#include <cstdint>

#include "gallop/base/clock.h"
#include "gallop/train/length.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// Determines when a periodic action is due. Must be queried only between two steps.
class Trigger {
 public:
  /// `length` converts epochs of the run to steps.
  Trigger(const Interval& interval, const Length& length) : interval_(interval), length_(length) {}

  /// Whether a multiple of the interval lies after the last done() and not after `step`.
  bool at(int64_t step) const {
    switch (interval_.unit) {
      case Interval::Unit::kNever: return false;
      case Interval::Unit::kSeconds: return monotonic_seconds() - done_at_ >= interval_.count;
      case Interval::Unit::kSteps: return steps(step) > steps(done_step_);
      case Interval::Unit::kEpochs: return epochs(step) > epochs(done_step_);
    }
    return false;
  }

  bool is_never() const { return interval_.unit == Interval::Unit::kNever; }

  /// Whether the interval is a time, so that processes may disagree.
  bool is_by_time() const { return interval_.unit == Interval::Unit::kSeconds; }

  void done(int64_t step) {
    done_step_ = step;
    done_at_ = monotonic_seconds();
  }

 private:
  // Complete multiples of the interval.
  int64_t steps(int64_t step) const {
    return static_cast<int64_t>(static_cast<double>(step) / interval_.count + 1e-9);
  }
  int64_t epochs(int64_t step) const { return length_.multiples_of_epochs(interval_.count, step); }

  Interval interval_;
  Length length_;
  int64_t done_step_ = 0;
  double done_at_ = monotonic_seconds();
};

}  // namespace gallop::train
