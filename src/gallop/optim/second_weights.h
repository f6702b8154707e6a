#pragma once

#include <string>

#include "gallop/kernel/average.h"
#include "gallop/optim/optimizer.h"

// Only for sources of optim/.
namespace gallop::optim {

/// Weights kept beside those of a model, which can change places with them.
class SecondWeights {
 public:
  /// `name` begins the names of the state: "NAME.counts", and "NAME.OWN.TENSOR" for each tensor.
  SecondWeights(std::string name, std::string own, NamedTensors tensors, kernel::AverageRule rule);

  /// After an update that `found_inf`, where defined and not 0, says did not happen. With `both`
  /// the model's weights become these.
  void update(const at::Tensor& found_inf, bool both);

  /// Puts these in the model's place, and back. An average of nothing is what the model has. That
  /// of a bf16 weight is fp32, and stays what it is: the model gets it rounded.
  void exchange(bool inside);

  /// Adds to a list; while exchanged, "NAME.training.TENSOR" is what the model trains at. Of a bf16
  /// weight it stands there beside the average.
  void add_state(NamedTensors& state) const;

 private:
  void check_layouts() const;

  std::string name_, own_;
  NamedTensors live_;
  std::vector<at::Tensor> own_tensors_, live_tensors_;
  std::vector<at::Tensor> training_;  // Of bf16 weights while exchanged; undefined elsewhere.
  at::Tensor counts_;
  kernel::AverageRule rule_;
  bool inside_ = false;
};

/// An optimizer around another.
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

 protected:
  Optimizer& inner() { return *inner_; }
  SecondWeights& second() { return second_; }

 private:
  std::unique_ptr<Optimizer> inner_;
  SecondWeights second_;
};

}  // namespace gallop::optim
