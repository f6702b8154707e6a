#include "gallop/tensor/logical_tensor.h"

namespace gallop {

NamedTensors wholes_of(const std::vector<LogicalTensor>& tensors) {
  NamedTensors all;
  for (const LogicalTensor& tensor : tensors) all.push_back({tensor.name, tensor.whole});
  return all;
}

}  // namespace gallop
