#include "gallop/parallel/shared_update.h"

#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/kernel/optimizer_step.h"

namespace gallop::parallel {

bool is_summed_by_chunk(const at::Tensor& parameter) {
  return parameter.is_cpu() &&
         (parameter.scalar_type() == at::kFloat || parameter.scalar_type() == at::kBFloat16);
}

at::Tensor make_norm_sums(const at::Tensor& like, int64_t chunks, bool is_by_chunk) {
  const auto options = like.options().requires_grad(false);
  return at::zeros({is_by_chunk ? std::max<int64_t>(1, chunks) : 1}, options.dtype(at::kDouble));
}

void sum_squares(const at::Tensor& sums, const std::vector<at::Tensor>& gradients,
                 const std::vector<int64_t>& first, bool is_by_chunk) {
  if (is_by_chunk) {
    kernel::sums_of_squares(sums, gradients, first);
  } else if (gradients.empty()) {
    sums.zero_();
  } else {
    sums.copy_(at::stack(at::_foreach_norm(gradients, 2, at::kDouble)).square().sum().reshape({1}));
  }
}

at::Tensor norm_of_all(const at::Tensor& sums, bool is_by_chunk) {
  return is_by_chunk ? kernel::norm_of_sums(sums) : sums.select(0, 0).sqrt();
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
