#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/optim/optimizer.h"
#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// Tensors of these sizes, strides and types on the meta device, which take no memory: an optimizer
/// of such parameters determines how its update can be divided, and the names and sizes of its
/// state.
NamedTensors on_meta(const NamedTensors& tensors);

/// Sets which process has which part of a state of `parameter`: the same part as of that, of blocks
/// of 8-bit states those that lie in it, and of other states all if one process has the parameter.
/// Returns whether there is such a part.
bool divide_as(LogicalTensor& state, const LogicalTensor& parameter);
/// Throws InternalError if `local` is not as large as what process `rank` has of the tensor.
void require_own_part(const LogicalTensor& tensor, int rank);

/// An optimizer whose state and updates are those of the parameters, or parts of them, that this
/// process updates.
class DividedOptimizer : public optim::Optimizer {
 public:
  /// `inner`: of what this process updates; `whole`: of the model, on the meta device.
  DividedOptimizer(std::unique_ptr<optim::Optimizer> inner, std::unique_ptr<optim::Optimizer> whole)
      : inner_(std::move(inner)), whole_(std::move(whole)) {}

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const optim::ScheduledOptions& scheduled) override;
  bool can_schedule(optim::ScheduledOption option) const override {
    return inner_->can_schedule(option);
  }
  NamedTensors state() const override { return inner_->state(); }
  double base_lr() const override { return inner_->base_lr(); }
  optim::Averaging averaging() const override { return inner_->averaging(); }
  std::vector<optim::UpdateUnit> update_units() const override { return whole_->update_units(); }
  void use_averaged_weights(bool averaged) override;
  std::vector<LogicalTensor> logical_state() const override;

 protected:
  /// After an update of this process's parameters.
  virtual void updated() {}
  /// After averaged weights have taken the place of the trained ones, or the reverse.
  /// `are_others`: whether that has changed anything.
  virtual void exchanged(bool /*averaged*/, bool /*are_others*/) {}
  /// Sets which process has which part of a state whose `local` is what this one has of it. Throws
  /// InternalError if that is something else.
  virtual void divide(LogicalTensor& state) const = 0;

 private:
  std::unique_ptr<optim::Optimizer> inner_, whole_;
};

}  // namespace gallop::parallel
