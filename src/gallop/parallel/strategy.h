#pragma once

#include <memory>
#include <string>

#include "gallop/config/component.h"
#include "gallop/parallel/collectives.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// How the processes of a training share a step. It wraps a model from outside: it knows its
/// parameters and hears of their gradients, and the model does not know of it.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual Collectives& collectives() = 0;

  /// What a step works on besides model and optimizer.
  virtual NamedTensors state() const = 0;

  /// Before the backward pass that is the last of a step: as soon as it has come to them, gradients
  /// of parameters are on their way to all processes.
  virtual void expect_gradients() = 0;

  /// After that pass, or without one where this process has no samples: each parameter's gradient
  /// is then the sum over all processes.
  virtual void finish_gradients() = 0;
};

/// The `parallel:` section of a recipe chooses one.
using StrategyRegistry = config::Registry<Strategy, Collectives&, const NamedTensors&>;

/// Every strategy that comes with Gallop.
StrategyRegistry built_in_strategies();

}  // namespace gallop::parallel
