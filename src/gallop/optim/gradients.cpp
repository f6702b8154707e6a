#include "gallop/optim/gradients.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include "gallop/kernel/update.h"

namespace gallop::optim {

namespace {

bool is_plain(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && tensor.layout() == c10::kStrided &&
         tensor.scalar_type() == c10::kFloat && tensor.is_non_overlapping_and_dense();
}

double plain_norm(at::TensorList gradients) {
  std::vector<kernel::ConstArray> arrays;
  arrays.reserve(gradients.size());
  for (const at::Tensor& gradient : gradients) {
    arrays.push_back({gradient.const_data_ptr<float>(), gradient.numel()});
  }
  return kernel::norm(arrays);
}

}  // namespace

std::vector<at::Tensor> gradients_of(const NamedTensors& parameters) {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters.size());
  for (const NamedTensor& parameter : parameters) {
    if (const at::Tensor& gradient = parameter.tensor.grad(); gradient.defined()) {
      gradients.push_back(gradient);
    }
  }
  return gradients;
}

at::Tensor gradient_norm(at::TensorList gradients) {
  const at::NoGradGuard no_grad;
  if (gradients.empty()) return norm_on_cpu(0);
  if (std::all_of(gradients.begin(), gradients.end(), is_plain)) {
    return norm_on_cpu(plain_norm(gradients));
  }
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2, c10::kDouble);
  return at::linalg_vector_norm(at::stack(norms));
}

at::Tensor norm_on_cpu(double norm) {
  return at::scalar_tensor(norm, at::TensorOptions(c10::kDouble));
}

at::Tensor clip_divisor(const at::Tensor& norm, double max_norm) {
  const at::NoGradGuard no_grad;
  // The host never learns the norm, so a step on a GPU does not wait and can be captured.
  const at::Tensor divisor = norm.div(max_norm).clamp_min(1);
  return at::where(at::isfinite(divisor), divisor, at::ones_like(divisor)).to(c10::kFloat);
}

std::string first_non_finite_gradient(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor& gradient = tensor.grad();
    if (gradient.defined() && !at::isfinite(gradient).all().item<bool>()) return name;
  }
  return {};
}

}  // namespace gallop::optim
