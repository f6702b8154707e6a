#include "gallop/parallel/packed.h"

namespace gallop::parallel {

std::vector<at::Tensor> trained(const NamedTensors& parameters) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.requires_grad()) all.push_back(tensor);
  }
  return all;
}

int64_t count_numbers(const std::vector<at::Tensor>& tensors) {
  int64_t count = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  return count;
}

std::vector<at::Tensor> places_in(const at::Tensor& packed, int64_t offset,
                                  const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> places;
  for (const at::Tensor& tensor : tensors) {
    places.push_back(packed.as_strided(tensor.sizes(), tensor.strides(), offset));
    offset += tensor.numel();
  }
  return places;
}

void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  for (size_t i = 0; i < from.size(); ++i) to[i].copy_(from[i]);
}

}  // namespace gallop::parallel
