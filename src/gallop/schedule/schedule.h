#pragma once

#include <memory>

#include "gallop/config/component.h"

namespace gallop::schedule {

/// A factor of the base learning rate as a pure function of progress.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// `progress` in [0, 1]: samples (or tokens) seen before this step over the run's total.
  virtual double factor(double progress) const = 0;
};

using ScheduleRegistry = config::Registry<Schedule>;

/// The schedules that come with Gallop.
ScheduleRegistry built_in_schedules();

}  // namespace gallop::schedule
