#include "gallop/optim/parameter_group.h"

#include <set>
#include <string>

#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/isa.h"

namespace gallop::optim {

namespace {

// Whether element i of both lies at the same place. Strides of dimensions of size 1 mean nothing.
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

void check_parameters(const NamedTensors& parameters) {
  if (parameters.empty()) throw UsageError("an optimizer was given no parameters to train");
  const at::Tensor& first = parameters.front().tensor;
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (!names.insert(name).second) {
      throw UsageError(fmt::format("two parameters are named '{}'", name));
    }
    const auto type = tensor.scalar_type();
    if (type != c10::kFloat && type != c10::kDouble) {
      throw UsageError(
          fmt::format("parameter '{}' is {}; optimizers update float or double, and "
                      "lower precision belongs in autocast",
                      name, c10::toString(type)));
    }
    if (type != first.scalar_type() || tensor.device() != first.device()) {
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

NamedTensors make_state(const char* prefix, const NamedTensors& parameters) {
  NamedTensors state;
  state.reserve(parameters.size());
  for (const auto& [name, tensor] : parameters) {
    state.push_back({fmt::format("{}.{}", prefix, name), at::zeros_like(tensor.detach())});
  }
  return state;
}

std::vector<ParameterGroup> group_by_decay(const NamedTensors& parameters,
                                           const std::vector<NamedTensors>& states,
                                           double weight_decay, bool decay_1d) {
  ParameterGroup decayed;
  ParameterGroup plain;
  decayed.weight_decay = weight_decay;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const at::Tensor& tensor = parameters[i].tensor;
    ParameterGroup& group = tensor.dim() > 1 || decay_1d ? decayed : plain;
    group.names.push_back(parameters[i].name);
    group.indices.push_back(i);
    group.parameters.push_back(tensor);
    group.states.resize(states.size());
    for (size_t kind = 0; kind < states.size(); ++kind) {
      group.states[kind].push_back(states[kind][i].tensor);
    }
  }
  std::vector<ParameterGroup> groups;
  for (ParameterGroup* group : {&decayed, &plain}) {
    if (!group->indices.empty()) groups.push_back(std::move(*group));
  }
  return groups;
}

ParameterGroup with_gradients(const ParameterGroup& group,
                              const std::function<bool(size_t)>& wanted) {
  ParameterGroup active;
  active.weight_decay = group.weight_decay;
  active.states.resize(group.states.size());
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    const at::Tensor& parameter = group.parameters[i];
    if (!parameter.grad().defined() || (wanted && !wanted(group.indices[i]))) continue;
    active.indices.push_back(group.indices[i]);
    active.parameters.push_back(parameter);
    active.gradients.push_back(gradient_in_layout_of(parameter, group.names[i]));
    for (size_t kind = 0; kind < group.states.size(); ++kind) {
      const at::Tensor& state = group.states[kind][i];
      if (!same_layout(parameter, state) || parameter.device() != state.device()) {
        throw UsageError(
            fmt::format("parameter '{}' changed its memory layout or device after the "
                        "optimizer was built; move the model first",
                        group.names[i]));
      }
      active.states[kind].push_back(state);
    }
  }
  return active;
}

SkipSignal::SkipSignal(const at::Tensor& grad_scale, const at::Tensor& found_inf) {
  if (grad_scale.defined()) grad_scale_ = grad_scale;
  if (found_inf.defined()) found_inf_ = found_inf.ne(0).to(c10::kFloat);
}

bool has_own_kernel(const ParameterGroup& group) {
  const at::Tensor& first = group.parameters.front();
  return kernel::kernels_are_allowed() && first.scalar_type() == c10::kFloat &&
         (first.device().is_cpu() || kernel::cuda_launcher_for(first.device()) != nullptr);
}

at::Tensor make_steps(const NamedTensors& parameters) {
  return at::zeros({static_cast<int64_t>(parameters.size())},
                   at::TensorOptions(c10::kFloat).device(parameters.front().tensor.device()));
}

void count_step(const at::Tensor& steps, const std::vector<size_t>& indices,
                const SkipSignal& skip) {
  if (indices.empty()) return;
  const auto add = [&skip](const at::Tensor& counts) {
    counts.add_(1);
    if (skip.found_inf()) counts.sub_(*skip.found_inf());
  };
  if (indices.size() == static_cast<size_t>(steps.numel())) {
    add(steps);
  } else {
    for (const size_t i : indices) add(steps.select(0, static_cast<int64_t>(i)));
  }
}

}  // namespace gallop::optim
