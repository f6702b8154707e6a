#include "gallop/optim/gradients.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/optimizer_step.h"

namespace gallop::optim {

namespace {

bool is_plain(const at::Tensor& tensor) {
  return (tensor.device().is_cpu() || kernel::cuda_launcher_for(tensor.device()) != nullptr) &&
         tensor.layout() == c10::kStrided && tensor.scalar_type() == c10::kFloat &&
         tensor.is_non_overlapping_and_dense();
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
  if (std::all_of(gradients.begin(), gradients.end(), is_plain)) return kernel::norm(gradients);
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2, c10::kDouble);
  return at::linalg_vector_norm(at::stack(norms));
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
