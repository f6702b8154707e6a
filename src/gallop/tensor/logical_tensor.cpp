#include "gallop/tensor/logical_tensor.h"

#include <algorithm>

namespace gallop {

std::vector<LogicalTensor::Part> LogicalTensor::parts_of_all() const {
  std::vector<Part> all;
  for (int replica = 0; replica < replicas.count; ++replica) {
    for (Part part : parts) {
      part.rank += replica * replicas.apart;
      all.push_back(part);
    }
  }
  std::ranges::sort(all, {}, &Part::rank);
  return all;
}

int64_t LogicalTensor::elements_in(int rank) const {
  if (is_replicated()) return whole.numel();
  int64_t elements = 0;
  for (const Part& part : parts) {
    if (giver(part, rank) == rank) elements += elements_of(part);
  }
  return elements;
}

NamedTensors wholes_of(const std::vector<LogicalTensor>& tensors) {
  NamedTensors all;
  for (const LogicalTensor& tensor : tensors) all.push_back({tensor.name, tensor.whole});
  return all;
}

std::vector<LogicalTensor> replicas_of(const NamedTensors& tensors) {
  std::vector<LogicalTensor> all;
  for (const auto& [name, tensor] : tensors) {
    all.push_back({.name = name, .whole = tensor, .local = tensor});
  }
  return all;
}

bool are_divided(const std::vector<LogicalTensor>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const LogicalTensor& tensor) { return !tensor.is_replicated(); });
}

}  // namespace gallop
