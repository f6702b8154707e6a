#include "gallop/model/module_model.h"

#include <utility>

#include "gallop/base/error.h"
#include "gallop/model/torch_module_model.h"

namespace gallop::model {

namespace {

class ModuleModel final : public TorchModuleModel {
 public:
  ModuleModel(std::shared_ptr<torch::nn::Module> module,
              std::function<at::Tensor(const at::Tensor&)> forward)
      : TorchModuleModel(std::move(module)), forward_(std::move(forward)) {}

  using Model::forward;
  at::Tensor forward(const at::Tensor& input) override { return forward_(in_format(input)); }

 private:
  std::function<at::Tensor(const at::Tensor&)> forward_;
};

}  // namespace

std::unique_ptr<Model> make_model(std::shared_ptr<torch::nn::Module> module,
                                  std::function<at::Tensor(const at::Tensor&)> forward) {
  if (module->parameters().empty()) throw UsageError("the module has no parameters to train");
  return std::make_unique<ModuleModel>(std::move(module), std::move(forward));
}

}  // namespace gallop::model
