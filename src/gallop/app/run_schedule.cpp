#include "gallop/app/run_schedule.h"

#include <algorithm>

#include "gallop/track/points.h"
#include "gallop/train/length.h"

namespace gallop::app {

namespace {

constexpr int64_t kPoints = 500;  // About the pixels of a chart.

// Evenly spaced steps from the first to the last, without duplicates.
std::vector<int64_t> some_of(int64_t steps) {
  const int64_t count = std::min(kPoints, steps);
  std::vector<int64_t> some;
  for (int64_t i = 0; i < count; ++i) {
    some.push_back(count == 1 ? 1 : 1 + i * (steps - 1) / (count - 1));
  }
  return some;
}

}  // namespace

track::RunSchedule run_schedule(Session& session) {
  const Recipe& recipe = session.recipe();
  const train::Length length = session.length();
  track::RunSchedule all;
  all.steps = length.steps;
  all.steps_per_epoch = length.batches_per_epoch;
  all.at = some_of(length.steps);
  const auto add = [&](const std::string& value, const std::string& name,
                       const schedule::Schedule& schedule, const auto& at) {
    track::RunSchedule::Line line;
    line.metric = track::metric_name("step", value);
    line.schedule = name;
    line.follows_evaluations = !schedule.state().empty();
    for (const int64_t step : all.at) {
      line.values.push_back(at(length.progress(length.samples_after(step - 1))));
    }
    all.lines.push_back(std::move(line));
  };
  const schedule::Schedule& schedule = session.schedule();
  const double lr = session.lr_factor() * session.optimizer().base_lr();
  add("lr", recipe.schedule.name(), schedule,
      [&](double progress) { return lr * schedule.factor(progress); });
  const ParameterSchedules& scheduled = session.parameter_schedules();
  for (const ParameterSchedules::One& one : scheduled.all()) {
    add(train::name_of(one.value), one.name,
        one.scheduled_value ? one.scheduled_value->schedule() : schedule,
        [&](double progress) { return scheduled.at(one, progress); });
  }
  return all;
}

}  // namespace gallop::app
