#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/app/parameter_schedules.h"
#include "gallop/app/recipe.h"
#include "gallop/schedule/course.h"
#include "gallop/train/length.h"

namespace gallop::app {

/// A recipe's training as steps, on data of so many samples an epoch.
class PlannedSteps {
 public:
  /// Throws UsageError where schedule and values that vary do not fit the recipe.
  PlannedSteps(const Registries& registries, const Recipe& recipe, int64_t samples_per_epoch);
  PlannedSteps(const PlannedSteps&) = delete;
  PlannedSteps& operator=(const PlannedSteps&) = delete;

  const train::Length& length() const { return length_; }
  /// The learning rate factor, and other scheduled values.
  const schedule::Course& course() const { return course_; }
  /// The names of the scheduled values besides the learning rate.
  const std::vector<train::ScheduledParameter>& scheduled() const { return scheduled_names_; }
  /// Whether values depend on evaluations.
  bool follows_evaluations() const { return follows_evaluations_; }
  /// Whether an evaluation is scheduled at this step, apart from the final one.
  bool evaluates_at(int64_t step) const;

  /// Steps whose checkpoints are useful for runs with the same prefix: where a constant value
  /// starts to change, and `evaluations` evaluations, spread over the training. Ascending.
  std::vector<int64_t> branch_points(int64_t evaluations) const;

 private:
  train::Length length_;
  train::Interval evaluate_every_;
  std::unique_ptr<schedule::Schedule> schedule_;
  ParameterSchedules values_;
  schedule::Course course_;
  std::vector<train::ScheduledParameter> scheduled_names_;
  bool follows_evaluations_ = false;
};

/// Whether two recipes differ only in options that take effect later: the schedule, `schedules`,
/// and the length. Runs that rewind to checkpoints (spikes, restoring the best weights) or keep
/// snapshots, that recompute statistics at the end (swa), that use a teacher, or that evaluate by
/// time never share.
bool shares_prefix(const Recipe& one, const Recipe& other);

/// The number of initial steps after which both trainings have bit-identical weights, optimizer
/// state, counters and evaluations, with this many samples per epoch. 0 unless shares_prefix().
/// Throws as PlannedSteps does.
int64_t common_steps(const Registries& registries, const Recipe& one, const Recipe& other,
                     int64_t samples_per_epoch);

}  // namespace gallop::app
