#pragma once

#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// A batch in the format of a training step.
inline NamedTensors labeled(const at::Tensor& input, const at::Tensor& target) {
  return {{"input", input}, {"target", target}};
}

}  // namespace gallop::train
