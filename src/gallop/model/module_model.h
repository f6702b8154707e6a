#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include "gallop/model/model.h"

namespace gallop::model {

/// Wraps a LibTorch module as a model; `forward` computes the outputs of a batch of inputs.
/// Parameters and buffers keep the module's names.
std::unique_ptr<Model> make_model(std::shared_ptr<torch::nn::Module> module,
                                  std::function<at::Tensor(const at::Tensor&)> forward);

/// Like make_model(), for a module whose forward() takes and returns one tensor.
template <typename Module>
std::unique_ptr<Model> model_of(std::shared_ptr<Module> module) {
  auto forward = [module](const at::Tensor& input) { return module->forward(input); };
  return make_model(std::move(module), std::move(forward));
}

}  // namespace gallop::model
