#include "gallop/optim/optimizer_parameters.h"

#include <algorithm>
#include <set>
#include <string>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/formats.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/update_table.h"

namespace gallop::optim {

namespace {

// The type of state for parameters of this type.
c10::ScalarType wide(c10::ScalarType type) { return type == c10::kBFloat16 ? c10::kFloat : type; }

// Whether both have the same memory layout. Strides of dimensions of size 1 are irrelevant.
bool same_layout(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return false;
  for (int64_t i = 0; i < a.dim(); ++i) {
    if (a.size(i) != 1 && a.stride(i) != b.stride(i)) return false;
  }
  return true;
}

at::Tensor gradient_in_layout_of(const at::Tensor& parameter, const std::string& name) {
  const at::Tensor& gradient = parameter.grad();
  if (gradient.layout() != c10::kStrided) {
    throw UsageError(
        fmt::format("parameter '{}' has a sparse gradient; optimizers take dense ones", name));
  }
  if (same_layout(parameter, gradient)) return gradient;
  return at::empty_like(parameter).copy_(gradient);
}

}  // namespace

bool has_bf16(const NamedTensors& parameters) {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const NamedTensor& one) { return kernel::is_bf16(one.tensor); });
}

void check_parameters(const NamedTensors& parameters, bool rounds) {
  if (parameters.empty()) throw UsageError("an optimizer needs at least one parameter");
  const at::Tensor& first = parameters.front().tensor;
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (!names.insert(name).second) {
      throw UsageError(fmt::format("duplicate parameter name '{}'", name));
    }
    const auto type = tensor.scalar_type();
    if (type == c10::kBFloat16 && !rounds) {
      throw UsageError(fmt::format(
          "parameter '{}' is bf16, which this optimizer cannot round to: schedule-free ones, "
          "adafactor and muon need weights in fp32; set train.precision to bf16, or use another "
          "optimizer",
          name));
    }
    if (type != c10::kFloat && type != c10::kDouble && type != c10::kBFloat16) {
      throw UsageError(
          fmt::format("parameter '{}' is {}; optimizers update float or double, and "
                      "lower precision belongs in autocast",
                      name, c10::toString(type)));
    }
    if (wide(type) != wide(first.scalar_type()) || tensor.device() != first.device()) {
      throw UsageError(
          fmt::format("parameter '{}' is {} on {}, but '{}' is {} on {}; an optimizer "
                      "takes parameters of one type and device",
                      name, c10::toString(type), tensor.device().str(), parameters.front().name,
                      c10::toString(first.scalar_type()), first.device().str()));
    }
    if (!tensor.is_non_overlapping_and_dense()) {
      throw UsageError(
          fmt::format("parameter '{}' is a view with gaps; give the optimizer a tensor "
                      "of its own",
                      name));
    }
  }
}

NamedTensors make_state(const char* prefix, const NamedTensors& parameters, double value,
                        bool for_8_bits) {
  NamedTensors state;
  state.reserve(parameters.size());
  for (const auto& [name, tensor] : parameters) {
    auto options = tensor.options().requires_grad(false).dtype(wide(tensor.scalar_type()));
    if (for_8_bits && tensor.numel() >= kLeast8Bits) options = options.device(at::kMeta);
    state.push_back(
        {fmt::format("{}.{}", prefix, name), at::full_like(tensor.detach(), value, options)});
  }
  return state;
}

void OptimizerParameters::keep_in_8_bits(const std::string& rule) {
  if (!has_own_kernel(parameters) && !parameters.front().tensor.is_meta()) {
    throw UsageError(
        "optimizer.state_bits is 8, which needs parameters in fp32 on the CPU or a GPU, updated by "
        "Gallop's own kernels; set it to 32");
  }
  const int signs = kernel::update_rule(rule).signs_of_8_bits;
  scales.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    if (tensor.numel() < kLeast8Bits) continue;
    for (size_t kind = 0; kind < states.size(); ++kind) {
      at::Tensor& state = states[kind][i].tensor;
      const int zero =
          (signs >> kind & 1) != 0 ? kernel::StateMap<true>::kZero : kernel::StateMap<false>::kZero;
      state = at::full_like(state, zero, state.options().device(tensor.device()).dtype(c10::kByte));
    }
    const int64_t blocks = (tensor.numel() + kernel::kStateBlock - 1) / kernel::kStateBlock;
    scales[i] = {
        fmt::format("{}.{}", tensor.is_contiguous() ? "scales" : "scales_channels_last", name),
        at::zeros({static_cast<int64_t>(states.size()), blocks},
                  tensor.options().requires_grad(false).dtype(c10::kFloat))};
  }
}

void OptimizerParameters::round_by(const std::string& rounding) {
  if (!has_bf16(parameters)) {
    if (rounding == "auto") return;
    throw UsageError(fmt::format(
        "optimizer.rounding is {}, but no weight is kept in bf16; set train.precision to "
        "bf16-weights, or leave rounding out",
        rounding));
  }
  if (!has_own_kernel(parameters) && !parameters.front().tensor.is_meta()) {
    throw UsageError(
        "train.precision=bf16-weights needs Gallop's own kernels, which round weights, and they "
        "are switched off or not made for this device; set it to bf16");
  }
  draws = rounding == "auto" || rounding == "stochastic";
  if (rounding != "kahan") return;
  compensations.resize(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, tensor] = parameters[i];
    if (!kernel::is_bf16(tensor)) continue;
    compensations[i] = {fmt::format("compensation.{}", name), at::zeros_like(tensor.detach())};
  }
}

void OptimizerParameters::put_into(kernel::OptimizerStep& step,
                                   const at::Tensor& weight_decay) const {
  if (weight_decay.defined()) {
    step.scheduled.push_back(weight_decay);
    step.scheduled_options.push_back(kernel::kWeightDecayOption);
  }
  std::vector<std::vector<at::Tensor>> kinds(states.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const auto& [name, parameter] = parameters[i];
    if (!parameter.grad().defined()) continue;
    step.parameters.push_back(parameter);
    step.gradients.push_back(gradient_in_layout_of(parameter, name));
    const bool is_scheduled = weight_decay.defined() && !options.has_own_decay[i];
    step.weight_decays.push_back(is_scheduled ? kernel::kScheduledDecay : options.weight_decays[i]);
    step.lr_factors.push_back(options.lr_factors[i]);
    step.indices.push_back(static_cast<int64_t>(i));
    if (!scales.empty()) step.scales.push_back(scales[i].tensor);
    if (!compensations.empty() && compensations[i].tensor.defined()) {
      step.compensations.push_back(compensations[i].tensor);
    }
    for (size_t kind = 0; kind < states.size(); ++kind) {
      const at::Tensor& state = states[kind][i].tensor;
      if (!same_layout(parameter, state) || parameter.device() != state.device()) {
        throw UsageError(
            fmt::format("parameter '{}' changed its memory layout or device after the "
                        "optimizer was built; move the model first",
                        name));
      }
      kinds[kind].push_back(state);
    }
  }
  for (const auto& kind : kinds) step.states.insert(step.states.end(), kind.begin(), kind.end());
}

bool has_own_kernel(const NamedTensors& parameters) {
  const at::Tensor& first = parameters.front().tensor;
  return kernel::kernels_enabled() && wide(first.scalar_type()) == c10::kFloat &&
         (first.device().is_cpu() || kernel::cuda_launcher_for(first.device()) != nullptr);
}

}  // namespace gallop::optim
