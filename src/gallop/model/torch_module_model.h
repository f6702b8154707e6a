#pragma once

#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include "gallop/model/model.h"

namespace gallop::model {

/// The base class of models whose weights are in a LibTorch module. Parameters and buffers have the
/// module's names.
class TorchModuleModel : public Model {
 public:
  explicit TorchModuleModel(std::shared_ptr<torch::nn::Module> module)
      : module_(std::move(module)) {}

  NamedTensors parameters() const override;
  NamedTensors buffers() const override;
  void set_training(bool training) override { module_->train(training); }
  bool training() const override { return module_->is_training(); }
  void to(at::Device device, bool channels_last) override;
  int64_t fp8_layers() const override;

 protected:
  /// Converts images to the memory format of the weights; returns other inputs unchanged.
  at::Tensor in_format(const at::Tensor& input) const;

 private:
  at::MemoryFormat memory_format() const;

  std::shared_ptr<torch::nn::Module> module_;
  bool channels_last_ = false;
};

}  // namespace gallop::model
