#include "gallop/schedule/scheduled_value.h"

#include <cmath>

#include <fmt/format.h>

namespace gallop::schedule {

void visit(config::Visitor& visitor, ScheduledValueConfig& config) {
  visitor.field({.name = "name", .help = "schedule of the value"}, config.schedule);
  visitor.field({.name = "to",
                 .help = "the value at factor 0; at factor 1 it is the recipe's",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.to);
}

bool has_momentum(const Schedule& schedule) {
  // A sequence may set it in a later part only.
  for (int i = 0; i < 1000; ++i) {
    if (schedule.momentum(i / 1000.)) return true;
  }
  return false;
}

ScheduledValue::ScheduledValue(const char* name, const ScheduledValueConfig& config, double base,
                               const RunLength& length)
    : schedule_(dynamic_cast<const ScheduleRegistry&>(config.schedule.catalog())
                    .build(config.schedule, length)),
      base_(base),
      to_(config.to) {
  if (base != config.to) return;
  throw UsageError(
      fmt::format("schedules.{0} goes from {1} to {1}; set another {0} in the recipe, or "
                  "schedules.{0}.to",
                  name, base));
}

double ScheduledValue::at(double progress) const {
  return std::lerp(to_, base_, schedule_->factor(progress));
}

}  // namespace gallop::schedule
