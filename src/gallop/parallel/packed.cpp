#include "gallop/parallel/packed.h"

namespace gallop::parallel {

std::vector<at::Tensor> trained(const NamedTensors& parameters) {
  std::vector<at::Tensor> all;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.requires_grad()) all.push_back(tensor);
  }
  return all;
}

std::vector<std::string> without_gradient(const NamedTensors& parameters) {
  std::vector<std::string> without;
  bool has_some = false;
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.requires_grad()) continue;
    if (tensor.grad().defined()) {
      has_some = true;
    } else {
      without.push_back(name);
    }
  }
  return has_some ? without : std::vector<std::string>();
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
