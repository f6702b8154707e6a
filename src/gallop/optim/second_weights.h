#pragma once

#include <string>

#include "gallop/kernel/average.h"
#include "gallop/optim/optimizer.h"

// Internal to optim/.
namespace gallop::optim {

/// A second set of weights that can be swapped with the model's.
class SecondWeights {
 public:
  /// `name` prefixes the state: "NAME.counts", and "NAME.OWN.TENSOR" for each tensor.
  SecondWeights(std::string name, std::string own, NamedTensors tensors, kernel::AverageRule rule);

  /// Updates the weights after an optimizer step, unless `found_inf` is defined and not 0. With
  /// `both`, the model's weights are set to the result.
  void update(const at::Tensor& found_inf, bool both);

  /// Swaps the weights into the model, and back. An empty average equals the model's weights. The
  /// average of a bf16 weight is fp32 and unchanged: the model gets it rounded.
  void exchange(bool inside);

  /// Appends the state; while swapped in, "NAME.training.TENSOR" are the trained weights, for bf16
  /// weights in addition to the average.
  void add_state(NamedTensors& state) const;

 private:
  void check_layouts() const;

  std::string name_, own_;
  NamedTensors live_;
  std::vector<at::Tensor> own_tensors_, live_tensors_;
  std::vector<at::Tensor>
      training_;  // Values of bf16 weights while swapped in; undefined otherwise.
  at::Tensor counts_;
  kernel::AverageRule rule_;
  bool inside_ = false;
};

/// An optimizer that wraps another one.
class WrappingOptimizer : public Optimizer {
 public:
  WrappingOptimizer(std::unique_ptr<Optimizer> inner, SecondWeights second)
      : inner_(std::move(inner)), second_(std::move(second)) {}

  void use_averaged_weights(bool averaged) override { second_.exchange(averaged); }
  NamedTensors state() const override {
    NamedTensors state = inner_->state();
    second_.add_state(state);
    return state;
  }
  bool can_schedule(ScheduledOption option) const override { return inner_->can_schedule(option); }
  double base_lr() const override { return inner_->base_lr(); }
  std::vector<UpdateUnit> update_units() const override { return inner_->update_units(); }

 protected:
  Optimizer& inner() { return *inner_; }
  SecondWeights& second() { return second_; }

 private:
  std::unique_ptr<Optimizer> inner_;
  SecondWeights second_;
};

}  // namespace gallop::optim
