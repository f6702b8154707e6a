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

/// The parameters besides the learning rate that change along a run: those of the recipe's
/// `schedules:` section, and the momentum of its schedule.
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
  /// `schedule`, that of the learning rate, must outlive it. Throws UsageError for a parameter that
  /// the recipe's optimizer or model does not have, and for two schedules of the momentum.
  ParameterSchedules(const Recipe& recipe, const schedule::RunLength& length,
                     const schedule::Schedule& schedule);

  const std::vector<One>& all() const { return all_; }
  /// At `progress` of the run.
  double at(const One& one, double progress) const;

  /// The schedules for the trainer; this object must outlive them.
  std::vector<train::ParameterSchedule> for_training() const;

  /// Throws UsageError for a parameter that neither the optimizer nor the loss uses.
  void check(const Recipe& recipe, const optim::Optimizer& optimizer,
             const train::Loss& loss) const;

 private:
  const schedule::Schedule* schedule_ = nullptr;
  std::vector<One> all_;
};

}  // namespace gallop::app
