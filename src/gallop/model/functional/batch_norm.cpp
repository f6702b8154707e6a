#include "gallop/model/functional/batch_norm.h"

#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/batch_norm.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/first_order.h"
#include "gallop/model/functional/shared_batch_norm.h"

namespace gallop::model::functional {

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernel::BatchNormActivation activation_of(bool relu) {
  return relu ? kernel::BatchNormActivation::kRelu : kernel::BatchNormActivation::kNone;
}

class BatchNormFunction final : public torch::autograd::Function<BatchNormFunction> {
 public:
  struct Form {
    kernel::BatchNormParameters parameters;
    bool relu = false, fork = false;
  };

  // Tensors are separate arguments, because apply() looks for them among its arguments.
  static variable_list forward(AutogradContext* context, const at::Tensor& x,
                               const at::Tensor& weight, const at::Tensor& bias,
                               const std::optional<at::Tensor>& given_residual, const Form& form) {
    const auto residual = given_residual.value_or(at::Tensor());
    auto result = kernel::batch_norm(x, residual, form.parameters, activation_of(form.relu),
                                     /*keep_positive=*/residual.defined());
    context->save_for_backward(
        {x, weight, bias, result.mean, result.inverse_deviation, result.positive});
    context->saved_data["relu"] = form.relu;
    context->saved_data["has_residual"] = residual.defined();
    context->set_materialize_grads(false);
    if (!form.fork) return {result.y};
    return {result.y, result.y.detach()};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    require_first_order("batch_norm");
    const auto saved = context->get_saved_variables();
    auto dy = gradients[0];
    auto more_dy = gradients.size() > 1 ? gradients[1] : at::Tensor();
    if (!dy.defined()) std::swap(dy, more_dy);
    if (!dy.defined()) return variable_list(kArguments);
    // Undefined tensors are not counted in needs_input_grad().
    const bool wants_residual =
        context->saved_data["has_residual"].toBool() && context->needs_input_grad(3);
    auto result = kernel::batch_norm_backward(
        {.dy = dy,
         .more_dy = more_dy,
         .x = saved[0],
         .weight = saved[1],
         .bias = saved[2],
         .mean = saved[3],
         .inverse_deviation = saved[4],
         .positive = saved[5],
         .activation = activation_of(context->saved_data["relu"].toBool()),
         .wants_residual = wants_residual,
         .wants_x = context->needs_input_grad(0)});
    return {result.x, result.weight, result.bias, result.residual, at::Tensor()};
  }

 private:
  static constexpr size_t kArguments = 5;
};

bool is_taken(const at::Tensor& x, const at::Tensor& residual,
              const kernel::BatchNormParameters& parameters, const BatchNormOptions& options) {
  const auto is_plain = [](const at::Tensor& tensor) {
    return tensor.is_cpu() && tensor.scalar_type() == at::kFloat && tensor.is_contiguous();
  };
  const bool fits = !residual.defined() ||
                    (residual.sizes() == x.sizes() && residual.scalar_type() == x.scalar_type());
  return kernel::kernels_enabled() && options.training && !SharedBatchNormScope::is_there() &&
         kernel::takes_batch_norm(x) && fits && is_plain(parameters.weight) &&
         is_plain(parameters.bias) && is_plain(parameters.running_mean) &&
         is_plain(parameters.running_var);
}

bool has_gradient(const at::Tensor& x, const at::Tensor& residual,
                  const kernel::BatchNormParameters& parameters) {
  return at::GradMode::is_enabled() &&
         (x.requires_grad() || (residual.defined() && residual.requires_grad()) ||
          parameters.weight.requires_grad() || parameters.bias.requires_grad());
}

// at::batch_norm(), which divides by 0 for the variance of a single value, with a variance of 0.
at::Tensor batch_norm_of(const at::Tensor& x, const kernel::BatchNormParameters& parameters,
                         bool training) {
  const bool is_single = training && x.numel() == x.size(1) && parameters.running_var.defined();
  const at::Tensor running_var =
      is_single ? parameters.running_var.clone() : parameters.running_var;
  at::Tensor y = at::batch_norm(x, parameters.weight, parameters.bias, parameters.running_mean,
                                running_var, training, parameters.momentum, parameters.eps,
                                /*cudnn_enabled=*/true);
  if (is_single) parameters.running_var.mul_(1 - parameters.momentum);
  return y;
}

at::Tensor by_library(const at::Tensor& x, const at::Tensor& residual,
                      const kernel::BatchNormParameters& parameters,
                      const BatchNormOptions& options) {
  auto y = options.training && SharedBatchNormScope::is_there()
               ? shared_batch_norm(x, parameters)
               : batch_norm_of(x, parameters, options.training);
  if (residual.defined()) y.add_(residual);
  if (!options.relu) return y;
  return at::GradMode::is_enabled() ? activation(kernel::Activation::kRelu, y) : y.relu_();
}

// Notifies autograd of tensors that the kernel changed through pointers.
void tell_changed(const kernel::BatchNormParameters& parameters) {
  parameters.running_mean.unsafeGetTensorImpl()->bump_version();
  parameters.running_var.unsafeGetTensorImpl()->bump_version();
}

variable_list by_kernel(const at::Tensor& x, const at::Tensor& residual,
                        const kernel::BatchNormParameters& parameters,
                        const BatchNormOptions& options, bool fork) {
  tell_changed(parameters);
  if (has_gradient(x, residual, parameters)) {
    return BatchNormFunction::apply(x, parameters.weight, parameters.bias,
                                    residual.defined() ? std::optional(residual) : std::nullopt,
                                    BatchNormFunction::Form{parameters, options.relu, fork});
  }
  const auto y = kernel::batch_norm(x, residual, parameters, activation_of(options.relu),
                                    /*keep_positive=*/false)
                     .y;
  return {y, y};
}

}  // namespace

at::Tensor batch_norm(const at::Tensor& x, const at::Tensor& residual,
                      const kernel::BatchNormParameters& parameters,
                      const BatchNormOptions& options) {
  if (!is_taken(x, residual, parameters, options)) {
    return by_library(x, residual, parameters, options);
  }
  return by_kernel(x, residual, parameters, options, /*fork=*/false)[0];
}

Fork batch_norm_fork(const at::Tensor& x, const at::Tensor& residual,
                     const kernel::BatchNormParameters& parameters,
                     const BatchNormOptions& options) {
  if (!is_taken(x, residual, parameters, options)) {
    const auto y = by_library(x, residual, parameters, options);
    return {y, y};
  }
  const auto both = by_kernel(x, residual, parameters, options, /*fork=*/true);
  return {both[0], both[1]};
}

}  // namespace gallop::model::functional
