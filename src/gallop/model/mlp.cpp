#include "gallop/model/mlp.h"

#include <algorithm>

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/model/layers.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

bool is_of_numbers(const Task& task) { return task.kind == Task::Kind::kNumbers; }

class Mlp final : public Network {
 public:
  Mlp(const MlpConfig& config, const Task& task, InitialWeights weights)
      : activation_(config.activation == "gelu" ? kernel::Activation::kGelu
                                                : kernel::Activation::kRelu),
        dropout_(config.dropout) {
    Initializer initializer(weights);
    const auto init = parse_init(config.linear_init);
    const auto list = register_module("layers", std::make_shared<List>());
    auto sizes = config.hidden;
    sizes.push_back(task.classes);
    int64_t in = is_of_numbers(task) ? std::max<int64_t>(1, task.context) * task.features
                                     : task.channels * task.height * task.width;
    for (size_t i = 0; i < sizes.size(); ++i) {
      layers_.push_back(std::make_shared<Linear>(
          initializer,
          Linear::Options{
              .in = in, .out = sizes[i], .init = init, .is_head = i + 1 == sizes.size()}));
      list->register_module(std::to_string(i), layers_.back());
      in = sizes[i];
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward_blocks(input, 0, static_cast<int64_t>(layers_.size())).x;
  }

  std::vector<std::string> cut_modules() const override {
    return numbered("layers.", layers_.size());
  }

  Output forward_blocks(const at::Tensor& input, int64_t begin, int64_t end) override {
    auto x = begin == 0 ? input.flatten(1) : input;
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      if (i + 1 == layers_.size()) return {layers_[i]->forward(x)};
      const auto block = [this, i](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{block_of(i, in[0])};
      };
      x = run_block(i, x, [&](const at::Tensor& in) {
        return recomputes(i) ? functional::recompute(block, {in}, layers_[i]->parameters())[0]
                             : block_of(i, in);
      });
    }
    return {x};
  }

  int64_t blocks() const override {
    // ReLU saves only its output, which the next layer saves as well.
    const bool keeps_more = activation_ != kernel::Activation::kRelu || dropout_ > 0;
    return keeps_more ? static_cast<int64_t>(layers_.size()) - 1 : 0;
  }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    return {layers_.begin(), layers_.end() - 1};
  }

 private:
  struct List : torch::nn::Module {};

  at::Tensor block_of(size_t layer, const at::Tensor& x) const {
    return functional::dropout(layers_[layer]->forward(x, activation_), dropout_, is_training());
  }

  kernel::Activation activation_;
  double dropout_;
  std::vector<std::shared_ptr<Linear>> layers_;
};

}  // namespace

void visit(config::Visitor& visitor, MlpConfig& config) {
  visitor.field({.name = "hidden", .help = "widths of the hidden layers", .min = 1}, config.hidden);
  visitor.field({.name = "activation",
                 .help = "activation function of the hidden layers",
                 .choices = {"relu", "gelu"}},
                config.activation);
  visitor.field(kDropout, config.dropout);
  visitor.field({.name = "linear_init", .help = "weight initialization", .choices = init_names()},
                config.linear_init);
}

std::unique_ptr<Model> make_mlp(const MlpConfig& config, const Task& task, InitialWeights weights) {
  if (is_of_numbers(task)) {
    require_one_output(task, "mlp");
    require(task.features > 0 && task.classes > 0,
            "mlp: the data need at least one input and one output");
    require_no_categories(task, "mlp");
  } else {
    require_images(task, "mlp");
  }
  for (const int64_t size : config.hidden) {
    require(size > 0,
            "mlp: a hidden layer needs at least one output, but got " + std::to_string(size));
  }
  return make_model(std::make_shared<Mlp>(config, task, weights));
}

}  // namespace gallop::model
