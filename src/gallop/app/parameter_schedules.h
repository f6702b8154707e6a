#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/schedule.h"
#include "gallop/schedule/scheduled_value.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// What changes along a recipe's run besides the learning rate: what its `schedules:` section says,
/// and the momentum of its schedule.
class ParameterSchedules {
 public:
  struct One {
    train::ScheduledParameter value;
    /// Null for the momentum of the learning rate's schedule.
    std::unique_ptr<schedule::ScheduledValue> scheduled_value;
    double base = 0;   ///< The recipe's.
    std::string name;  ///< Of its schedule; empty for the momentum of the learning rate's.
  };

  ParameterSchedules() = default;
  /// `schedule`, that of the learning rate, outlives it. Throws UsageError for a value that the
  /// recipe's optimizer or model does not have, and for a momentum that is to follow two schedules.
  ParameterSchedules(const Recipe& recipe, const schedule::RunLength& length,
                     const schedule::Schedule& schedule);

  const std::vector<One>& all() const { return all_; }
  /// At `progress` of the run.
  double at(const One& one, double progress) const;

  /// For the trainer; this outlives what is returned.
  std::vector<train::ParameterSchedule> for_training() const;

  /// Throws UsageError for a value that the optimizer or the loss takes at no step.
  void check(const Recipe& recipe, const optim::Optimizer& optimizer,
             const train::Loss& loss) const;

 private:
  const schedule::Schedule* schedule_ = nullptr;
  std::vector<One> all_;
};

}  // namespace gallop::app
