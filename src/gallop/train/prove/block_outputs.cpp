#include "gallop/train/prove/block_outputs.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

namespace gallop::train {

namespace {

// The module that all of these parameters belong to: "layer1.0" for "layer1.0.conv1.weight" and
// "layer1.0.bn1.weight"; empty if there is none.
std::string module_of(const std::vector<std::string>& parameters) {
  if (parameters.empty()) return {};
  std::string prefix = parameters.front();
  for (const std::string& name : parameters) {
    const auto end = std::mismatch(prefix.begin(), prefix.end(), name.begin(), name.end()).first;
    prefix.erase(end, prefix.end());
  }
  const auto dot = prefix.rfind('.');
  return dot == std::string::npos ? std::string() : prefix.substr(0, dot);
}

}  // namespace

BlockOutputs::BlockOutputs(model::Model& model) : model_(model) {
  for (const auto& parameters : model.block_parameters()) {
    const std::string module = module_of(parameters);
    names_.push_back(module.empty() ? fmt::format("block {}", names_.size()) : module);
  }
  model_.set_block_hooks(this);
}

void BlockOutputs::after_forward(size_t block, const std::vector<at::Tensor>& outputs) {
  // Several tensors, such as a residual stream and what is not yet added to it, are divided
  // differently by other operators.
  if (outputs.size() != 1) return;
  // A copy, as the next layer may overwrite its input.
  const at::NoGradGuard no_grad;
  kept_.push_back({names_.at(block), outputs.front().detach().clone()});
}

NamedTensors BlockOutputs::take(int64_t rows) {
  std::erase_if(kept_, [&](const NamedTensor& one) {
    return !one.tensor.is_floating_point() || one.tensor.dim() == 0 || one.tensor.size(0) != rows;
  });
  return std::exchange(kept_, {});
}

}  // namespace gallop::train
