#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/optimizer_step.h"

// Only for sources of optim/.
namespace gallop::optim {

/// A step of an optimizer that consists of LibTorch's operators: nothing is read on the host, so it
/// can be recorded, and the step compiler joins its pointwise parts.
class TensorStep {
 public:
  /// `step` has the parameters that are updated.
  explicit TensorStep(const kernel::OptimizerStep& step);

  size_t size() const { return step_.parameters.size(); }
  /// Its number among all parameters of the optimizer.
  size_t index(size_t i) const { return static_cast<size_t>(step_.indices[i]); }
  const at::Tensor& parameter(size_t i) const { return step_.parameters[i]; }
  /// Divided by the loss scale, in the parameter's type.
  at::Tensor gradient(size_t i) const;
  /// fp32, no dimensions.
  at::Tensor lr(size_t i) const;
  double weight_decay(size_t i) const { return step_.weight_decays[i]; }

  /// Of a parameter or state; one that is skipped stays, whatever came out.
  void write(const at::Tensor& to, const at::Tensor& value) const;

 private:
  const kernel::OptimizerStep& step_;
  std::optional<at::Tensor> skip_;
};

}  // namespace gallop::optim
