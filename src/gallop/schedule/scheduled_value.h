#pragma once

#include <memory>

#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

/// The schedule of a value other than the learning rate, as in a recipe.
struct ScheduledValueConfig {
  explicit ScheduledValueConfig(const config::Catalog& schedules)
      : schedule(schedules, "constant") {}

  config::Component schedule;
  double to = 0;  ///< The value at factor 0.

  bool is_scheduled() const { return schedule.name() != "constant"; }
};

void visit(config::Visitor& visitor, ScheduledValueConfig& config);

/// Whether a schedule sets a momentum in any part of the run.
bool has_momentum(const Schedule& schedule);

/// A value that is `base` at its schedule's factor 1, `to` at factor 0, and interpolated linearly
/// between.
class ScheduledValue {
 public:
  /// `name` is used in messages. Throws UsageError if both ends are equal, and the errors of the
  /// schedule.
  ScheduledValue(const char* name, const ScheduledValueConfig& config, double base,
                 const RunLength& length);

  double at(double progress) const;
  Schedule& schedule() const { return *schedule_; }

 private:
  std::unique_ptr<Schedule> schedule_;
  double base_, to_;
};

}  // namespace gallop::schedule
