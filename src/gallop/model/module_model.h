#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include "gallop/model/model.h"

namespace gallop::model {

/// Shows a module of LibTorch's as a model: `forward` computes its outputs from a batch of inputs.
/// Parameters and buffers have the module's names.
std::unique_ptr<Model> make_model(std::shared_ptr<torch::nn::Module> module,
                                  std::function<at::Tensor(const at::Tensor&)> forward);

/// The same of a module with a member forward() that takes and returns a tensor.
template <typename Module>
std::unique_ptr<Model> model_of(std::shared_ptr<Module> module) {
  auto forward = [module](const at::Tensor& input) { return module->forward(input); };
  return make_model(std::move(module), std::move(forward));
}

}  // namespace gallop::model
