#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// What an evaluation found.
struct Metrics {
  struct Other {
    std::string name;
    double value = 0;  ///< Not a number where it is undefined.
    bool higher_is_better = true;
  };
  double loss = 0;
  double accuracy = 0;  ///< Share of right first guesses.
  std::vector<Other> others{};
};

/// How a value changes along a run: a factor of its base value, for the learning rate that of the
/// recipe. A pure function of progress, but for schedules with a state.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// From 0 to 1. `progress` in [0, 1]: samples (or tokens) seen before this step over the run's
  /// total.
  virtual double factor(double progress) const = 0;

  /// The momentum (beta1 of the Adam family) that goes with it, where the schedule has its own.
  virtual std::optional<double> momentum(double /*progress*/) const { return {}; }

  /// Whether a cycle, from a high factor down to a low one, ends after progress `from` and not
  /// after `to`; nothing where the schedule has none.
  virtual std::optional<bool> cycle_ends(double /*from*/, double /*to*/) const { return {}; }

  /// Names of the metrics that evaluated() looks at.
  virtual std::vector<std::string> followed_metrics() const { return {}; }

  /// What an evaluation at `progress` found, for schedules that follow it.
  virtual void evaluated(double /*progress*/, const Metrics& /*metrics*/) {}

  /// All that factor() depends on besides progress, for checkpoints. Empty where nothing is: such a
  /// schedule takes no notice of evaluations.
  virtual std::vector<double> state() const { return {}; }
  /// The inverse; `state` has the size of state().
  virtual void restore(const std::vector<double>& /*state*/) {}
};

/// Schedules by name, for a run of the given length. They throw UsageError where options contradict
/// each other, UnknownLength where the run's length does not say enough.
using ScheduleRegistry = config::Registry<Schedule, const RunLength&>;

/// The schedules that come with Gallop.
ScheduleRegistry built_in_schedules();

}  // namespace gallop::schedule
