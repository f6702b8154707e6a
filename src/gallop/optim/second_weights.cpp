#include "gallop/optim/second_weights.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/formats.h"

namespace gallop::optim {

SecondWeights::SecondWeights(std::string name, std::string own, NamedTensors tensors,
                             kernel::AverageRule rule)
    : name_(std::move(name)), own_(std::move(own)), rule_(rule) {
  const at::NoGradGuard no_grad;
  for (NamedTensor& item : tensors) {
    // Counters are not averaged.
    if (!item.tensor.is_floating_point()) continue;
    own_tensors_.push_back(kernel::is_bf16(item.tensor) ? item.tensor.detach().to(c10::kFloat)
                                                        : item.tensor.detach().clone());
    live_tensors_.push_back(item.tensor);
    live_.push_back(std::move(item));
  }
  training_.resize(live_tensors_.size());
  counts_ = at::zeros({2}, live_tensors_.front().options().dtype(c10::kDouble));
}

void SecondWeights::update(const at::Tensor& found_inf, bool both) {
  const at::NoGradGuard no_grad;
  check_layouts();
  const kernel::AverageStep step{.averages = own_tensors_,
                                 .values = live_tensors_,
                                 .counts = counts_,
                                 .found_inf = found_inf,
                                 .rule = rule_};
  if (both) {
    kernel::average_both(step);
  } else {
    kernel::average(step);
  }
}

void SecondWeights::exchange(bool inside) {
  if (inside == inside_) return;
  const at::NoGradGuard no_grad;
  // The average is still empty; slow weights exist from the start.
  const bool is_empty = inside && rule_.kind != kernel::AverageRule::Kind::kShare &&
                        !counts_.is_meta() && counts_.select(0, 1).item<double>() == 0;
  for (size_t i = 0; i < own_tensors_.size(); ++i) {
    const at::Tensor &own = own_tensors_[i], &live = live_tensors_[i];
    if (is_empty) {
      own.copy_(live);
      if (kernel::is_bf16(live)) training_[i] = live.detach().clone();
      continue;
    }
    if (kernel::is_bf16(live) && !inside) {
      live.copy_(training_[i]);
      training_[i].reset();
      continue;
    }
    const at::Tensor kept = live.detach().clone();
    live.copy_(own);
    if (kernel::is_bf16(live)) {
      training_[i] = kept;
    } else {
      own.copy_(kept);
    }
  }
  inside_ = inside;
}

void SecondWeights::add_state(NamedTensors& state) const {
  state.push_back({name_ + ".counts", counts_});
  for (size_t i = 0; i < own_tensors_.size(); ++i) {
    const bool is_exchanged = inside_ && !training_[i].defined();
    state.push_back(
        {fmt::format("{}.{}.{}", name_, is_exchanged ? "training" : own_, live_[i].name),
         own_tensors_[i]});
    if (training_[i].defined()) {
      state.push_back({fmt::format("{}.training.{}", name_, live_[i].name), training_[i]});
    }
  }
}

// Kernels access raw memory.
void SecondWeights::check_layouts() const {
  for (size_t i = 0; i < own_tensors_.size(); ++i) {
    const at::Tensor &own = own_tensors_[i], &live = live_tensors_[i];
    if (own.strides() == live.strides() && own.sizes() == live.sizes() &&
        own.device() == live.device()) {
      continue;
    }
    throw UsageError(
        fmt::format("'{}' changed its memory layout or device after the optimizer was built; move "
                    "the model first",
                    live_[i].name));
  }
}

}  // namespace gallop::optim
