#include "gallop/model/tabular_mlp.h"

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/layers.h"
#include "gallop/model/network.h"
#include "gallop/model/torch_module_model.h"

namespace gallop::model {

namespace {

class TabularMlp final : public torch::nn::Module {
 public:
  TabularMlp(const TabularMlpConfig& config, const Task& task, InitialWeights weights)
      : dropout_(config.dropout) {
    Initializer initializer(weights);
    input_ =
        register_module("input", std::make_shared<TabularInput>(initializer, config.input, task));
    const auto list = register_module("layers", std::make_shared<List>());
    std::vector<int64_t> sizes = config.hidden;
    sizes.push_back(task.classes);
    int64_t in = input_->width();
    for (const int64_t size : sizes) {
      const bool is_head = layers_.size() + 1 == sizes.size();
      layers_.push_back(std::make_shared<Linear>(
          initializer, Linear::Options{.in = in, .out = size, .is_head = is_head}));
      list->register_module(std::to_string(layers_.size() - 1), layers_.back());
      in = size;
    }
  }

  at::Tensor forward(const TabularBatch& batch) const {
    at::Tensor x = input_->forward(batch.numbers, batch.categories);
    for (size_t i = 0; i + 1 < layers_.size(); ++i) {
      x = functional::dropout(layers_[i]->forward(x, kernel::Activation::kRelu), dropout_,
                              is_training());
    }
    return layers_.back()->forward(x);
  }

 private:
  struct List : torch::nn::Module {};

  double dropout_;
  std::shared_ptr<TabularInput> input_;
  std::vector<std::shared_ptr<Linear>> layers_;
};

class TabularMlpModel final : public TorchModuleModel {
 public:
  explicit TabularMlpModel(std::shared_ptr<TabularMlp> network)
      : TorchModuleModel(network), network_(std::move(network)) {}

  using Model::forward_to_head;
  at::Tensor forward(const at::Tensor& input) override {
    return network_->forward({.numbers = input});
  }
  at::Tensor forward(const NamedTensors& batch) override {
    return network_->forward(tabular_batch(batch));
  }
  Output forward_to_head(const NamedTensors& batch) override { return {forward(batch)}; }

 private:
  std::shared_ptr<TabularMlp> network_;
};

}  // namespace

void visit(config::Visitor& visitor, TabularMlpConfig& config) {
  visit(visitor, config.input);
  visitor.field({.name = "hidden", .help = "widths of the hidden layers", .min = 1}, config.hidden);
  visitor.field(kDropout, config.dropout);
}

std::unique_ptr<Model> make_tabular_mlp(const TabularMlpConfig& config, const Task& task,
                                        InitialWeights weights) {
  require_table(task, "tabular-mlp");
  return std::make_unique<TabularMlpModel>(std::make_shared<TabularMlp>(config, task, weights));
}

}  // namespace gallop::model
