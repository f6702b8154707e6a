#pragma once

#include <memory>

#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

/// How a value other than the learning rate changes, as in a recipe.
struct ScheduledValueConfig {
  explicit ScheduledValueConfig(const config::Catalog& schedules)
      : schedule(schedules, "constant") {}

  config::Component schedule;
  double to = 0;  ///< The value where the factor is 0.

  bool is_scheduled() const { return schedule.name() != "constant"; }
};

void visit(config::Visitor& visitor, ScheduledValueConfig& config);

/// Whether a schedule has a momentum of its own, if only in a part of the run.
bool has_momentum(const Schedule& schedule);

/// A value that is `base` where its schedule's factor is 1, `to` where it is 0, and in between
/// accordingly.
class ScheduledValue {
 public:
  /// `name` stands in messages. Throws UsageError where both ends are the same, and what the
  /// schedule throws.
  ScheduledValue(const char* name, const ScheduledValueConfig& config, double base,
                 const RunLength& length);

  double at(double progress) const;
  Schedule& schedule() const { return *schedule_; }

 private:
  std::unique_ptr<Schedule> schedule_;
  double base_, to_;
};

}  // namespace gallop::schedule
