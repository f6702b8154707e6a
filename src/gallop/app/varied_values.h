#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/schedule.h"
#include "gallop/schedule/variation.h"
#include "gallop/train/trainer.h"

namespace gallop::app {

/// What changes along a recipe's run besides the learning rate: what its `vary:` section says, and
/// the momentum of its schedule.
class VariedValues {
 public:
  struct One {
    train::Value value;
    /// Null for the momentum of the learning rate's schedule.
    std::unique_ptr<schedule::Variation> variation;
    double base = 0;   ///< The recipe's.
    std::string name;  ///< Of its schedule; empty for the momentum of the learning rate's.
  };

  VariedValues() = default;
  /// `schedule`, that of the learning rate, outlives it. Throws UsageError for a value that the
  /// recipe's optimizer or model does not have, and for a momentum that is to follow two schedules.
  VariedValues(const Recipe& recipe, const schedule::RunLength& length,
               const schedule::Schedule& schedule);

  const std::vector<One>& all() const { return all_; }
  /// At `progress` of the run.
  double at(const One& one, double progress) const;

  /// For the trainer; this outlives what is returned.
  std::vector<train::VariedValue> for_training() const;

  /// Throws UsageError for a value that the optimizer or the loss takes at no step.
  void check(const Recipe& recipe, const optim::Optimizer& optimizer,
             const train::Loss& loss) const;

 private:
  const schedule::Schedule* schedule_ = nullptr;
  std::vector<One> all_;
};

}  // namespace gallop::app
