#pragma once

#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

#include "gallop/optim/gradients.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// What an optimizer updates in this process: the parameters of a model or, where several processes
/// share the update, this process's parts of them.
class UpdatedParameters {
 public:
  virtual ~UpdatedParameters() = default;

  /// The parameters or parts, with their gradients, which are those of the whole batch.
  virtual const NamedTensors& tensors() const = 0;
  /// Whether they are parts. The update then overwrites gradients, so that their norm is taken
  /// before it.
  virtual bool are_parts() const = 0;
  /// The norm of the gradients of all parameters, as optim::gradient_norm() computes it where one
  /// process has them all. All processes call it together.
  virtual at::Tensor gradient_norm() const = 0;
  /// As optim::first_non_finite_gradient(), of all parameters. All processes call it together.
  virtual std::string first_non_finite_gradient() const = 0;
  /// The name of the first parameter with an infinity or a NaN; empty for none. All processes call
  /// it together.
  virtual std::string first_non_finite_parameter() const = 0;
};

/// All parameters of a model, which this process updates alone or as every other process does.
class WholeParameters final : public UpdatedParameters {
 public:
  explicit WholeParameters(NamedTensors parameters) : parameters_(std::move(parameters)) {}

  const NamedTensors& tensors() const override { return parameters_; }
  bool are_parts() const override { return false; }
  at::Tensor gradient_norm() const override {
    return optim::gradient_norm(gradients_of(parameters_));
  }
  std::string first_non_finite_gradient() const override {
    return optim::first_non_finite_gradient(parameters_);
  }
  std::string first_non_finite_parameter() const override {
    return optim::first_non_finite(parameters_);
  }

 private:
  NamedTensors parameters_;
};

}  // namespace gallop::optim
