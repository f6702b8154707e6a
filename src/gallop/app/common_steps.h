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
  /// The learning rate's factor, and what else changes.
  const schedule::Course& course() const { return course_; }
  /// Which values these are besides the learning rate.
  const std::vector<train::ScheduledParameter>& scheduled() const { return scheduled_names_; }
  /// Whether values depend on what evaluations find.
  bool follows_evaluations() const { return follows_evaluations_; }
  /// Whether an evaluation comes at this step anyway, not only as it is the last one.
  bool evaluates_at(int64_t step) const;

  /// Steps whose checkpoints serve runs that begin alike: where values that had stayed the same
  /// begin to change, and evaluations, `evaluations` of them, spread over the training. Rising.
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

/// Whether two recipes differ in nothing but what can matter later: the schedule, the values of
/// `schedules`, and the length. Others are not known to begin alike: where checkpoints are gone
/// back to (spikes, the best weights in the end) or kept as snapshots, where statistics are taken
/// again at the end (swa), where another run teaches, and where evaluations come by time.
bool shares_prefix(const Recipe& one, const Recipe& other);

/// After how many steps from the beginning both trainings have the same weights, optimizer state,
/// counters and evaluations, bit for bit, on data of so many samples an epoch. 0 unless
/// shares_prefix(). Throws as PlannedSteps does.
int64_t common_steps(const Registries& registries, const Recipe& one, const Recipe& other,
                     int64_t samples_per_epoch);

}  // namespace gallop::app
