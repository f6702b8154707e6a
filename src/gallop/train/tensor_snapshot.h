#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// Copies of tensors, from which they can be restored.
class TensorSnapshot {
 public:
  explicit TensorSnapshot(const NamedTensors& tensors) { keep(tensors); }

  void keep(const NamedTensors& tensors);
  /// Copies the current contents.
  void capture();
  void restore() const;

 private:
  std::vector<at::Tensor> live_, copies_;
};

}  // namespace gallop::train
