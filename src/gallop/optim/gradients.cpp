#include "gallop/optim/gradients.h"

#include <algorithm>
#include <iterator>
#include <numeric>

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
         tensor.layout() == c10::kStrided &&
         (tensor.scalar_type() == c10::kFloat || tensor.scalar_type() == c10::kBFloat16) &&
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

void drop_gradients(const NamedTensors& parameters) {
  for (const auto& parameter : parameters) parameter.tensor.mutable_grad().reset();
}

at::Tensor gradient_norm(at::TensorList gradients) {
  const at::NoGradGuard no_grad;
  if (std::all_of(gradients.begin(), gradients.end(), is_plain)) return kernel::norm(gradients);
  const std::vector<at::Tensor> norms = at::_foreach_norm(gradients, 2, c10::kDouble);
  return at::linalg_vector_norm(at::stack(norms));
}

at::Tensor clip_divisor(const at::Tensor& norm, double max_norm) {
  const at::NoGradGuard no_grad;
  // The norm stays on the device, so that a step on a GPU does not synchronize and can be captured.
  const at::Tensor divisor = norm.div(max_norm).clamp_min(1);
  return at::where(at::isfinite(divisor), divisor, at::ones_like(divisor)).to(c10::kFloat);
}

void clip_values(at::TensorList gradients, double limit, const at::Tensor& scale) {
  const at::NoGradGuard no_grad;
  if (!scale.defined()) {
    for (const at::Tensor& gradient : gradients) gradient.clamp_(-limit, limit);
    return;
  }
  const at::Tensor high = scale.mul(limit), low = high.neg();
  for (const at::Tensor& gradient : gradients) gradient.clamp_(low, high);
}

namespace {

// Norms by unit, with the tensor's number of dimensions; fp32 for bf16 tensors.
at::Tensor unit_norms(const at::Tensor& tensor) {
  const auto format = c10::promoteTypes(tensor.scalar_type(), c10::kFloat);
  if (tensor.dim() < 2) return at::linalg_vector_norm(tensor);
  std::vector<int64_t> within(static_cast<size_t>(tensor.dim() - 1));
  std::iota(within.begin(), within.end(), 1);
  return at::linalg_vector_norm(tensor, 2, within, /*keepdim=*/true, format);
}

}  // namespace

void clip_adaptively(const NamedTensors& parameters, double limit, const at::Tensor& scale) {
  constexpr double kLeastWeight = 1e-3, kLeastGradient = 1e-6;
  const at::NoGradGuard no_grad;
  const auto is_matrix = [](const NamedTensor& parameter) { return parameter.tensor.dim() == 2; };
  const auto last = std::find_if(parameters.rbegin(), parameters.rend(), is_matrix);
  const auto end = last == parameters.rend() ? parameters.end() : std::prev(last.base());
  for (auto parameter = parameters.begin(); parameter != end; ++parameter) {
    const at::Tensor& gradient = parameter->tensor.grad();
    if (!gradient.defined()) continue;
    at::Tensor most = unit_norms(parameter->tensor.detach()).clamp_min(kLeastWeight).mul(limit);
    if (scale.defined()) most = most.mul(scale);
    gradient.mul_(most.div(unit_norms(gradient).clamp_min(kLeastGradient)).clamp_max(1));
  }
}

std::string first_non_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!at::isfinite(tensor).all().item<bool>()) return name;
  }
  return {};
}

std::string first_non_finite_gradient(const NamedTensors& parameters) {
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor& gradient = tensor.grad();
    if (gradient.defined() && !at::isfinite(gradient).all().item<bool>()) return name;
  }
  return {};
}

}  // namespace gallop::optim
