#include "gallop/model/module_model.h"

#include <utility>

#include "gallop/base/error.h"

namespace gallop::model {

namespace {

class ModuleModel final : public Model {
 public:
  ModuleModel(std::shared_ptr<torch::nn::Module> module,
              std::function<at::Tensor(const at::Tensor&)> forward)
      : module_(std::move(module)), forward_(std::move(forward)) {
    if (module_->parameters().empty()) throw UsageError("the module has no parameters to train");
  }

  using Model::forward;
  at::Tensor forward(const at::Tensor& input) override {
    return forward_(input.dim() == 4 ? input.contiguous(memory_format()) : input);
  }

  NamedTensors parameters() const override { return list(module_->named_parameters()); }
  NamedTensors buffers() const override { return list(module_->named_buffers()); }

  void set_training(bool training) override { module_->train(training); }
  bool training() const override { return module_->is_training(); }
  void to(at::Device device, bool channels_last) override {
    module_->to(device);
    channels_last_ = channels_last;
    for (auto& parameter : module_->parameters()) {
      if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(memory_format()));
    }
  }

 private:
  at::MemoryFormat memory_format() const {
    return channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  }
  static NamedTensors list(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
    NamedTensors named;
    for (const auto& entry : tensors) named.push_back({entry.key(), entry.value()});
    return named;
  }

  std::shared_ptr<torch::nn::Module> module_;
  std::function<at::Tensor(const at::Tensor&)> forward_;
  bool channels_last_ = false;
};

}  // namespace

std::unique_ptr<Model> make_model(std::shared_ptr<torch::nn::Module> module,
                                  std::function<at::Tensor(const at::Tensor&)> forward) {
  return std::make_unique<ModuleModel>(std::move(module), std::move(forward));
}

}  // namespace gallop::model
