#include "gallop/model/module_model.h"

#include <utility>

#include "gallop/base/error.h"
#include "gallop/model/torch_module_model.h"

namespace gallop::model {

namespace {

class ModuleModel final : public TorchModuleModel {
 public:
  ModuleModel(const std::shared_ptr<torch::nn::Module>& module,
              std::function<at::Tensor(const at::Tensor&)> forward)
      : TorchModuleModel(module), forward_(std::move(forward)) {
    if (module->parameters().empty()) throw UsageError("the module has no parameters to train");
  }

  using Model::forward;
  at::Tensor forward(const at::Tensor& input) override { return forward_(in_format(input)); }

 private:
  std::function<at::Tensor(const at::Tensor&)> forward_;
};

}  // namespace

std::unique_ptr<Model> make_model(std::shared_ptr<torch::nn::Module> module,
                                  std::function<at::Tensor(const at::Tensor&)> forward) {
  return std::make_unique<ModuleModel>(module, std::move(forward));
}

}  // namespace gallop::model
