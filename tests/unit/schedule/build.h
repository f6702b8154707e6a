#pragma once

#include <memory>
#include <string>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/schedule/schedule.h"

namespace gallop::schedule {

inline const ScheduleRegistry kSchedules = built_in_schedules();

/// A run of 4 epochs of 10 steps.
inline const RunLength kRun{
    .samples = 320, .samples_per_epoch = 80, .batch = 8, .batches_per_epoch = 10};

/// The `schedule:` section of a recipe, such as "{name: step, gamma: 0.5}".
inline std::unique_ptr<Schedule> build(const std::string& yaml, const RunLength& length = kRun) {
  config::Component component(kSchedules, "constant");
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(yaml, "recipe"),
      [&](config::Visitor& visitor) {
        visitor.field({.name = "name", .help = "of a schedule"}, component);
      },
      problems);
  problems.throw_if_any();
  return kSchedules.build(component, length);
}

/// The error for a schedule; empty if it is valid.
inline std::string refusal(const std::string& yaml, const RunLength& length = kRun) {
  try {
    build(yaml, length);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace gallop::schedule
