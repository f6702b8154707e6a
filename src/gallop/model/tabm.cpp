#include "gallop/model/tabm.h"

#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/relu.h>

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/network.h"
#include "gallop/model/torch_module_model.h"

namespace gallop::model {

namespace {

// A layer that the members share. x [N, k, in] to [N, k, out].
class SharedLinear final : public torch::nn::Module {
 public:
  SharedLinear(Initializer& initializer, int64_t in, int64_t out, int64_t members, bool has_r,
               bool has_s) {
    weight_ = register_parameter("weight", initializer.weight({out, in}, {}));
    const at::Tensor bias = initializer.bias(out, in, {});
    if (has_r) r_ = register_parameter("r", initializer.constant({members, in}, 1));
    if (has_s) s_ = register_parameter("s", initializer.constant({members, out}, 1));
    // The members' biases are equal at first.
    bias_ = register_parameter("bias", has_s ? bias.repeat({members, 1}) : bias);
  }

  // Draws one factor for each chunk of inputs and each member.
  void draw_r(Initializer& initializer, const std::vector<int64_t>& chunks) {
    const int64_t members = r_.size(0);
    const at::Tensor draws = initializer.normal({members, static_cast<int64_t>(chunks.size())}, 1);
    const at::NoGradGuard no_grad;
    int64_t begin = 0;
    for (size_t i = 0; i < chunks.size(); ++i) {
      r_.narrow(1, begin, chunks[i]).copy_(draws.narrow(1, static_cast<int64_t>(i), 1));
      begin += chunks[i];
    }
  }

  at::Tensor forward(const at::Tensor& x_NKC) const {
    const at::Tensor x = r_.defined() ? x_NKC * r_ : x_NKC;
    const at::Tensor y = functional::linear(x.flatten(0, 1), weight_, {})
                             .view({x.size(0), x.size(1), weight_.size(0)});
    return at::relu((s_.defined() ? y * s_ : y) + bias_);
  }

 private:
  at::Tensor weight_, bias_, r_, s_;
};

class Tabm final : public torch::nn::Module {
 public:
  Tabm(const TabmConfig& config, const Task& task, InitialWeights weights)
      : members_(config.members), dropout_(config.dropout), outputs_(task.outputs) {
    Initializer initializer(weights);
    input_ =
        register_module("input", std::make_shared<TabularInput>(initializer, config.input, task));
    const auto list = register_module("layers", std::make_shared<List>());
    const bool is_mini = config.adapters == "first";
    int64_t in = input_->width();
    for (int64_t i = 0; i < config.layers; ++i) {
      layers_.push_back(std::make_shared<SharedLinear>(initializer, in, config.width, members_,
                                                       i == 0 || !is_mini, !is_mini));
      list->register_module(std::to_string(i), layers_.back());
      in = config.width;
    }
    layers_.front()->draw_r(initializer, input_->chunks());
    head_weight_ = register_parameter(
        "head_weight",
        initializer.bias(members_ * in * task.classes, in, {}).view({members_, in, task.classes}));
    head_bias_ = register_parameter(
        "head_bias", initializer.bias(members_ * task.classes, in, {}).view({members_, 1, -1}));
  }

  // [N, k, outputs]
  at::Tensor forward(const TabularBatch& batch) const {
    at::Tensor x = input_->forward(batch.numbers, batch.categories).unsqueeze(1);
    for (const auto& layer : layers_) {
      x = functional::dropout(layer->forward(x), dropout_, is_training());
    }
    return (at::bmm(x.transpose(0, 1), head_weight_) + head_bias_).transpose(0, 1);
  }

  // The prediction of all members together, in the form of a single one's output.
  at::Tensor mean_of(const at::Tensor& each) const {
    at::Tensor x = each.scalar_type() == at::kDouble ? each : each.to(at::kFloat);
    switch (outputs_) {
      case Task::Outputs::kClasses:
        return at::logsumexp(at::log_softmax(x, -1), 1) - std::log(static_cast<double>(members_));
      case Task::Outputs::kLabels: return x.sigmoid().mean(1).logit(kLeastProbability);
      case Task::Outputs::kNumbers: return x.mean(1);
    }
    return x;
  }

  int64_t members() const { return members_; }

 private:
  static constexpr double kLeastProbability = 1e-7;
  struct List : torch::nn::Module {};

  int64_t members_;
  double dropout_;
  Task::Outputs outputs_;
  std::shared_ptr<TabularInput> input_;
  std::vector<std::shared_ptr<SharedLinear>> layers_;
  at::Tensor head_weight_, head_bias_;
};

class TabmModel final : public TorchModuleModel {
 public:
  explicit TabmModel(std::shared_ptr<Tabm> network)
      : TorchModuleModel(network), network_(std::move(network)) {}

  at::Tensor forward(const at::Tensor& input) override { return predict({.numbers = input}); }
  at::Tensor forward(const NamedTensors& batch) override { return predict(tabular_batch(batch)); }
  Output forward_to_head(const at::Tensor& input) override {
    return {.x = network_->forward({.numbers = input}), .members = network_->members()};
  }
  Output forward_to_head(const NamedTensors& batch) override {
    return {.x = network_->forward(tabular_batch(batch)), .members = network_->members()};
  }

 private:
  at::Tensor predict(const TabularBatch& batch) {
    return network_->mean_of(network_->forward(batch));
  }

  std::shared_ptr<Tabm> network_;
};

}  // namespace

void visit(config::Visitor& visitor, TabmConfig& config) {
  visit(visitor, config.input);
  visitor.field({.name = "members", .help = "networks that share their weights", .min = 1},
                config.members);
  visitor.field({.name = "adapters",
                 .help = "adapters of each member: factors of the inputs and outputs of all layers "
                         "(TabM), or of the first input (TabM-mini)",
                 .choices = {"all", "first"}},
                config.adapters);
  visitor.field({.name = "layers", .help = "hidden layers", .min = 1}, config.layers);
  visitor.field({.name = "width", .help = "width of the hidden layers", .min = 1}, config.width);
  visitor.field(kDropout, config.dropout);
}

std::unique_ptr<Model> make_tabm(const TabmConfig& config, const Task& task,
                                 InitialWeights weights) {
  require_table(task, "tabm");
  return std::make_unique<TabmModel>(std::make_shared<Tabm>(config, task, weights));
}

}  // namespace gallop::model
