#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// The metrics of an evaluation.
struct Metrics {
  struct Other {
    std::string name;
    double value = 0;  ///< NaN if undefined.
    bool higher_is_better = true;
  };
  double loss = 0;
  double accuracy = 0;  ///< Top-1 accuracy, 0 to 1.
  std::vector<Other> others{};
};

/// A schedule of a value along a run: a factor of its base value, such as the recipe's learning
/// rate. A pure function of progress, except for schedules with state.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// In [0, 1]. `progress` in [0, 1]: samples (or tokens) seen before this step relative to the
  /// run's total.
  virtual double factor(double progress) const = 0;

  /// The momentum (beta1 of the Adam family) that the schedule sets, if any.
  virtual std::optional<double> momentum(double /*progress*/) const { return {}; }

  /// Whether a cycle, from a high factor to a low one, ends after progress `from` and not after
  /// `to`; nothing if the schedule has no cycles.
  virtual std::optional<bool> cycle_ends(double /*from*/, double /*to*/) const { return {}; }

  /// Names of the metrics that evaluated() uses.
  virtual std::vector<std::string> followed_metrics() const { return {}; }

  /// Passes the metrics of an evaluation at `progress`, for schedules that depend on them.
  virtual void evaluated(double /*progress*/, const Metrics& /*metrics*/) {}

  /// The state of factor() besides progress, for checkpoints. Empty for stateless schedules, which
  /// ignore evaluations.
  virtual std::vector<double> state() const { return {}; }
  /// Restores the state; it must have the size of state().
  virtual void restore(const std::vector<double>& /*state*/) {}
};

/// Schedules by name, for a run of the given length. Factories throw UsageError if options
/// conflict, and UnknownLength if the run's length is insufficiently known.
using ScheduleRegistry = config::Registry<Schedule, const RunLength&>;

/// The built-in schedules.
ScheduleRegistry built_in_schedules();

}  // namespace gallop::schedule
