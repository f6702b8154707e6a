#include "gallop/parallel/divided_optimizer.h"

#include <exception>
#include <map>
#include <string_view>

#include <ATen/ops/empty_strided.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/state_map.h"
#include "gallop/parallel/shared_update.h"

namespace gallop::parallel {

namespace {

// Blocks of 8-bit states lie in the order of memory, which for parts of parameters is the usual
// one.
std::string name_in_parts(const std::string& name) {
  constexpr std::string_view kScales = "scales_channels_last.";
  const size_t at = name.find(kScales);
  if (at == std::string::npos) return name;
  return name.substr(0, at) + "scales." + name.substr(at + kScales.size());
}

}  // namespace

NamedTensors on_meta(const NamedTensors& tensors) {
  NamedTensors all;
  for (const auto& [name, tensor] : tensors) {
    all.push_back(
        {name, at::empty_strided(tensor.sizes(), tensor.strides(),
                                 tensor.options().device(at::kMeta).requires_grad(false))});
  }
  return all;
}

bool divide_as(LogicalTensor& state, const LogicalTensor& parameter) {
  const int64_t elements = parameter.whole.numel(), all = state.whole.numel();
  const int64_t blocks = (elements + kernel::kStateBlock - 1) / kernel::kStateBlock;
  const bool is_of_blocks =
      all != elements && state.whole.dim() == 2 && state.whole.size(1) == blocks;
  state.replicas = parameter.replicas;
  if (parameter.is_replicated()) return true;
  if (all == elements) {
    state.parts = parameter.parts;
    state.rows = parameter.rows;
  } else if (parameter.parts.size() == 1) {
    state.parts = {{parameter.parts.front().rank, 0, all}};
  } else if (is_of_blocks && parameter.rows == 1 && parameter.parts.front().last < 0) {
    state.rows = state.whole.size(0);
    for (const auto& part : parameter.parts) {
      state.parts.push_back({part.rank, part.begin / kernel::kStateBlock,
                             (part.end + kernel::kStateBlock - 1) / kernel::kStateBlock});
    }
  } else {
    return false;
  }
  return true;
}

void require_own_part(const LogicalTensor& tensor, int rank) {
  const int64_t own = tensor.elements_in(rank);
  const int64_t there = tensor.local.defined() ? tensor.local.numel() : 0;
  if (there == own) return;
  throw InternalError(fmt::format("optimizer: state '{}' has {} elements in this process, not {}",
                                  tensor.name, there, own));
}

at::Tensor DividedOptimizer::step(const at::Tensor& lr, const at::Tensor& grad_scale,
                                  const at::Tensor& found_inf,
                                  const optim::ScheduledOptions& scheduled) {
  inner_->step(lr, grad_scale, found_inf, scheduled);
  updated();
  return {};
}

void DividedOptimizer::use_averaged_weights(bool averaged) {
  // State that is kept in place of weights has another name.
  const std::vector<std::string> before = names_of(whole_->state());
  inner_->use_averaged_weights(averaged);
  whole_->use_averaged_weights(averaged);
  // If this process ends by an error, the others may not be there.
  if (std::uncaught_exceptions() > 0) return;
  exchanged(averaged, names_of(whole_->state()) != before);
}

std::vector<LogicalTensor> DividedOptimizer::logical_state() const {
  std::map<std::string, at::Tensor> local;
  for (const auto& [name, tensor] : inner_->state()) local.emplace(name, tensor);
  std::vector<LogicalTensor> all;
  for (const auto& [name, whole] : whole_->state()) {
    auto found = local.find(name);
    if (found == local.end()) found = local.find(name_in_parts(name));
    // An optimizer may keep nothing of a parameter of which this process has nothing.
    all.push_back({.name = name,
                   .whole = whole,
                   .local = found != local.end() ? found->second : at::Tensor()});
    divide(all.back());
  }
  return all;
}

}  // namespace gallop::parallel
