#include "gallop/parallel/shared_update.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/kernel/update.h"

namespace gallop::parallel {

namespace {

bool is_summed_by_chunk(const at::Tensor& parameter) {
  return parameter.is_cpu() &&
         (parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kBFloat16);
}

}  // namespace

SharedNorm::SharedNorm(const NamedTensors& parameters) {
  int64_t chunks = 0;
  for (const auto& [name, tensor] : parameters) {
    first_.push_back(chunks);
    if (!tensor.requires_grad()) continue;
    is_by_chunk_ &= is_summed_by_chunk(tensor);
    chunks += kernel::norm_chunks(tensor.numel());
  }
  const auto options = parameters.front().tensor.options().requires_grad(false);
  sums_ = at::zeros({is_by_chunk_ ? std::max<int64_t>(1, chunks) : 1}, options.dtype(at::kDouble));
}

void SharedNorm::add(size_t index, const at::Tensor& part, int64_t begin) {
  parts_.push_back(part);
  first_here_.push_back(first_[index] + begin / kernel::kNormChunk);
}

void SharedNorm::sum_here() const {
  std::vector<at::Tensor> gradients;
  std::vector<int64_t> first;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const at::Tensor& gradient = parts_[i].grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    gradients.push_back(gradient);
    first.push_back(first_here_[i]);
  }
  if (is_by_chunk_) {
    kernel::sums_of_squares(sums_, gradients, first);
  } else if (gradients.empty()) {
    sums_.zero_();
  } else {
    sums_.copy_(
        at::stack(at::_foreach_norm(gradients, 2, at::kDouble)).square().sum().reshape({1}));
  }
}

at::Tensor SharedNorm::norm() const {
  return is_by_chunk_ ? kernel::norm_of_sums(sums_) : sums_.select(0, 0).sqrt();
}

std::string first_found(const NamedTensors& tensors, const std::vector<std::string>& found) {
  for (const auto& [name, tensor] : tensors) {
    if (std::find(found.begin(), found.end(), name) != found.end()) return name;
  }
  return {};
}

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& one : tensors) names.push_back(one.name);
  return names;
}

}  // namespace gallop::parallel
