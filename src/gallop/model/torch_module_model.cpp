#include "gallop/model/torch_module_model.h"

#include <algorithm>

#include "gallop/model/layers.h"

namespace gallop::model {

namespace {

NamedTensors list(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
  NamedTensors named;
  for (const auto& entry : tensors) named.push_back({entry.key(), entry.value()});
  return named;
}

}  // namespace

NamedTensors TorchModuleModel::parameters() const { return list(module_->named_parameters()); }
NamedTensors TorchModuleModel::buffers() const { return list(module_->named_buffers()); }

void TorchModuleModel::to(at::Device device, bool channels_last) {
  module_->to(device);
  channels_last_ = channels_last;
  for (auto& parameter : module_->parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(memory_format()));
  }
}

int64_t TorchModuleModel::fp8_layers() const {
  const auto modules = module_->modules();
  return std::count_if(modules.begin(), modules.end(), [](const auto& module) {
    const auto* linear = module->template as<Linear>();
    return linear != nullptr && linear->can_be_fp8();
  });
}

at::Tensor TorchModuleModel::in_format(const at::Tensor& input) const {
  return input.dim() == 4 ? input.contiguous(memory_format()) : input;
}

at::MemoryFormat TorchModuleModel::memory_format() const {
  return channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

}  // namespace gallop::model
