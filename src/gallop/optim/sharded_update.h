#pragma once

#include <vector>

#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// The part of an update that an optimizer makes in one of several processes.
class ShardedUpdate {
 public:
  virtual ~ShardedUpdate() = default;

  /// The parts of the model's parameters that this process updates, with their gradients, which are
  /// those of the whole batch.
  virtual const NamedTensors& shards() const = 0;

  /// The norm of the gradients of all parameters, as gradient_norm() computes it where one process
  /// has them all. All processes call it together.
  virtual at::Tensor gradient_norm() const = 0;

  /// The optimizer's state in terms of the whole model: names, shapes and types are those of
  /// Optimizer::state() where one process has all of it.
  virtual std::vector<LogicalTensor> logical_state() const = 0;
};

}  // namespace gallop::optim
