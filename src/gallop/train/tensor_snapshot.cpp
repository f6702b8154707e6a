#include "gallop/train/tensor_snapshot.h"

#include <cstring>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>

namespace gallop::train {

void TensorSnapshot::keep(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    at::Tensor copy = tensor.detach().clone();  // May run out of memory.
    live_.push_back(tensor);
    copies_.push_back(std::move(copy));
  }
}

void TensorSnapshot::capture() {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < live_.size(); ++i) {
    const at::Tensor &from = live_[i], &to = copies_[i];
    // For a few elements, an operator costs more than the copy.
    if (from.is_cpu() && from.is_contiguous() && to.is_contiguous()) {
      std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), from.nbytes());
    } else {
      to.copy_(from);
    }
  }
}

void TensorSnapshot::restore() const {
  const at::NoGradGuard no_gradients;
  for (size_t i = 0; i < live_.size(); ++i) live_[i].copy_(copies_[i]);
}

}  // namespace gallop::train
