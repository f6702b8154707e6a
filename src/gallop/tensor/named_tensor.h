#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop {

/// A tensor and the name it has in checkpoints, such as "layer1.0.conv1.weight".
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

using NamedTensors = std::vector<NamedTensor>;

}  // namespace gallop
