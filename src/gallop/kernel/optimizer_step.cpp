#include "gallop/kernel/optimizer_step.h"

#include <cmath>
#include <optional>

#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cuda/update.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {

namespace {

using Optional = std::optional<at::Tensor>;
using Doubles = c10::ArrayRef<double>;

bool is_set(const Optional& skip) { return skip && skip->item<float>() != 0; }
float factor_of(const Optional& divisor) { return divisor ? 1 / divisor->item<float>() : 1; }

// What the norm of tensors without memory is.
template <typename... Arguments>
at::Tensor norm_without_memory(Arguments...) {
  return at::empty({}, at::TensorOptions(c10::kDouble).device(c10::kMeta));
}

at::Tensor fp64(double number) { return at::scalar_tensor(number, c10::kDouble); }

const float* fp32_of(const at::Tensor& gradient) {
  return gradient.scalar_type() == c10::kFloat ? gradient.const_data_ptr<float>() : nullptr;
}
const Bf16* bf16_of(const at::Tensor& gradient) {
  if (gradient.scalar_type() != c10::kBFloat16) return nullptr;
  return static_cast<const Bf16*>(gradient.const_data_ptr());
}

// By parameter: its bf16 copy; undefined where it has none.
std::vector<at::Tensor> by_parameter(size_t parameters, at::TensorList shadows,
                                     at::IntArrayRef shadowed) {
  std::vector<at::Tensor> all(parameters);
  for (size_t i = 0; i < shadows.size(); ++i) all[static_cast<size_t>(shadowed[i])] = shadows[i];
  return all;
}

Bf16* bf16_memory_of(const at::Tensor& shadow) {
  return shadow.defined() ? static_cast<Bf16*>(shadow.mutable_data_ptr()) : nullptr;
}

// The lists that the operators take.
struct Shadows {
  explicit Shadows(const OptimizerStep& step) {
    for (size_t i = 0; i < step.shadows.size(); ++i) {
      if (!step.shadows[i].defined()) continue;
      tensors.push_back(step.shadows[i]);
      of.push_back(static_cast<int64_t>(i));
    }
  }
  std::vector<at::Tensor> tensors;
  std::vector<int64_t> of;
};

// An operator of ours would not tell autograd, nor those who keep what they made of a parameter.
void count_changes(const std::vector<at::Tensor>& parameters) {
  for (const at::Tensor& parameter : parameters) parameter.unsafeGetTensorImpl()->bump_version();
}

at::Tensor norm_on_cpu(at::TensorList tensors) {
  std::vector<ConstArray> arrays;
  arrays.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) {
    arrays.push_back(
        {.data = fp32_of(tensor), .size = tensor.numel(), .bf16_data = bf16_of(tensor)});
  }
  return fp64(norm(arrays));
}

at::Tensor adamw_on_cpu(at::TensorList parameters, at::TensorList gradients,
                        at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                        const at::Tensor& steps, at::IntArrayRef indices, Doubles weight_decays,
                        const at::Tensor& lr, const Optional& divisor, const Optional& skip,
                        double beta1, double beta2, double eps, at::TensorList shadows,
                        at::IntArrayRef shadowed) {
  if (is_set(skip)) return norm_on_cpu(gradients);
  const double rate = lr.item<float>();
  const float factor = factor_of(divisor);
  auto* counts = steps.mutable_data_ptr<float>();
  // Bias corrections of one step count: nearly always the same for all parameters.
  double corrected = 0, correction1 = 1, correction2 = 1;
  const auto shadow_of = by_parameter(parameters.size(), shadows, shadowed);
  std::vector<AdamwTensor> tensors;
  tensors.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const double step = counts[indices[i]] += 1;
    if (step != corrected) {
      corrected = step;
      correction1 = 1 - std::pow(beta1, step);
      correction2 = 1 - std::pow(beta2, step);
    }
    tensors.push_back({.parameter = parameters[i].mutable_data_ptr<float>(),
                       .gradient = fp32_of(gradients[i]),
                       .bf16_gradient = bf16_of(gradients[i]),
                       .exp_avg = exp_avgs[i].mutable_data_ptr<float>(),
                       .exp_avg_sq = exp_avg_sqs[i].mutable_data_ptr<float>(),
                       .shadow = bf16_memory_of(shadow_of[i]),
                       .size = parameters[i].numel(),
                       .gradient_scale = factor,
                       .take1 = static_cast<float>(1 - beta1),
                       .beta2 = static_cast<float>(beta2),
                       .take2 = static_cast<float>(1 - beta2),
                       .eps = static_cast<float>(eps),
                       .keep = static_cast<float>(1 - rate * weight_decays[i]),
                       .rate = static_cast<float>(rate / correction1),
                       .root_scale = static_cast<float>(1 / std::sqrt(correction2))});
  }
  return fp64(update(tensors));
}

at::Tensor sgd_on_cpu(at::TensorList parameters, at::TensorList gradients,
                      at::TensorList momentum_buffers, const Optional& steps,
                      at::IntArrayRef indices, Doubles weight_decays, const at::Tensor& lr,
                      const Optional& divisor, const Optional& skip, double momentum,
                      double dampening, bool nesterov, at::TensorList shadows,
                      at::IntArrayRef shadowed) {
  if (is_set(skip)) return norm_on_cpu(gradients);
  const float factor = factor_of(divisor);
  const auto rate = lr.item<float>();
  float* counts = steps ? steps->mutable_data_ptr<float>() : nullptr;
  const auto shadow_of = by_parameter(parameters.size(), shadows, shadowed);
  std::vector<SgdTensor> tensors;
  tensors.reserve(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back({.parameter = parameters[i].mutable_data_ptr<float>(),
                       .gradient = fp32_of(gradients[i]),
                       .bf16_gradient = bf16_of(gradients[i]),
                       .momentum_buffer = momentum_buffers.empty()
                                              ? nullptr
                                              : momentum_buffers[i].mutable_data_ptr<float>(),
                       .shadow = bf16_memory_of(shadow_of[i]),
                       .size = parameters[i].numel(),
                       .gradient_scale = factor,
                       .lr = rate,
                       .weight_decay = static_cast<float>(weight_decays[i]),
                       .momentum = static_cast<float>(momentum),
                       .nesterov = nesterov});
    if (counts != nullptr && (counts[indices[i]] += 1) > 1) {
      tensors.back().take = static_cast<float>(1 - dampening);
    }
  }
  return fp64(update(tensors));
}

CudaLauncher& launcher_of(const at::Tensor& tensor) {
  CudaLauncher* launcher = cuda_launcher_for(tensor.device());
  if (launcher == nullptr) throw InternalError("optimizer step: a GPU without our kernels");
  return *launcher;
}

at::Tensor norm_on_cuda(at::TensorList tensors) {
  return norm_on_gpu(launcher_of(tensors.front()), tensors);
}

OptimizerStep step_of(at::TensorList parameters, at::TensorList gradients, const Optional& steps,
                      at::IntArrayRef indices, Doubles weight_decays, const at::Tensor& lr,
                      const Optional& divisor, const Optional& skip, at::TensorList shadows,
                      at::IntArrayRef shadowed) {
  return {.parameters = parameters.vec(),
          .gradients = gradients.vec(),
          .weight_decays = weight_decays.vec(),
          .indices = indices.vec(),
          .steps = steps.value_or(at::Tensor()),
          .lr = lr,
          .divisor = divisor.value_or(at::Tensor()),
          .skip = skip.value_or(at::Tensor()),
          .shadows = by_parameter(parameters.size(), shadows, shadowed)};
}

at::Tensor adamw_on_cuda(at::TensorList parameters, at::TensorList gradients,
                         at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                         const at::Tensor& steps, at::IntArrayRef indices, Doubles weight_decays,
                         const at::Tensor& lr, const Optional& divisor, const Optional& skip,
                         double beta1, double beta2, double eps, at::TensorList shadows,
                         at::IntArrayRef shadowed) {
  return adamw_on_gpu(launcher_of(lr),
                      step_of(parameters, gradients, steps, indices, weight_decays, lr, divisor,
                              skip, shadows, shadowed),
                      exp_avgs, exp_avg_sqs, {.beta1 = beta1, .beta2 = beta2, .eps = eps});
}

at::Tensor sgd_on_cuda(at::TensorList parameters, at::TensorList gradients,
                       at::TensorList momentum_buffers, const Optional& steps,
                       at::IntArrayRef indices, Doubles weight_decays, const at::Tensor& lr,
                       const Optional& divisor, const Optional& skip, double momentum,
                       double dampening, bool nesterov, at::TensorList shadows,
                       at::IntArrayRef shadowed) {
  return sgd_on_gpu(launcher_of(lr),
                    step_of(parameters, gradients, steps, indices, weight_decays, lr, divisor, skip,
                            shadows, shadowed),
                    momentum_buffers,
                    {.momentum = momentum, .dampening = dampening, .nesterov = nesterov});
}

Optional optional(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

}  // namespace

at::Tensor adamw(const OptimizerStep& step, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                 const AdamwOptions& options) {
  static const Operator kAdamw(
      "adamw_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] exp_avgs, Tensor(c!)[] "
      "exp_avg_sqs, Tensor(d!) steps, int[] indices, float[] weight_decays, Tensor lr, Tensor? "
      "divisor, Tensor? skip, float beta1, float beta2, float eps, Tensor(e!)[] shadows, int[] "
      "shadowed) -> Tensor norm",
      adamw_on_cpu, norm_without_memory, adamw_on_cuda);
  const Shadows shadows(step);
  at::Tensor norm =
      kAdamw(step.parameters, step.gradients, exp_avgs, exp_avg_sqs, step.steps, step.indices,
             step.weight_decays, step.lr, optional(step.divisor), optional(step.skip),
             options.beta1, options.beta2, options.eps, shadows.tensors, shadows.of);
  count_changes(step.parameters);
  return norm;
}

at::Tensor sgd(const OptimizerStep& step, at::TensorList momentum_buffers,
               const SgdOptions& options) {
  static const Operator kSgd(
      "sgd_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] momentum_buffers, "
      "Tensor(c!)? steps, int[] indices, float[] weight_decays, Tensor lr, Tensor? divisor, "
      "Tensor? skip, float momentum, float dampening, bool nesterov, Tensor(d!)[] shadows, int[] "
      "shadowed) -> Tensor norm",
      sgd_on_cpu, norm_without_memory, sgd_on_cuda);
  const Shadows shadows(step);
  at::Tensor norm =
      kSgd(step.parameters, step.gradients, momentum_buffers, optional(step.steps), step.indices,
           step.weight_decays, step.lr, optional(step.divisor), optional(step.skip),
           options.momentum, options.dampening, options.nesterov, shadows.tensors, shadows.of);
  count_changes(step.parameters);
  return norm;
}

at::Tensor norm(at::TensorList tensors) {
  if (tensors.empty()) return fp64(0);  // The dispatcher would not know where to go.
  static const Operator kNorm("norm(Tensor[] tensors) -> Tensor", norm_on_cpu, norm_without_memory,
                              norm_on_cuda);
  return kNorm(tensors);
}

}  // namespace gallop::kernel
