#include "gallop/model/layer/activation.h"

#include <functional>
#include <utility>

#include <ATen/ops/elu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/softplus.h>

#include "gallop/model/functional/activation.h"

namespace gallop::model {

namespace {

class KernelActivation final : public Layer {
 public:
  explicit KernelActivation(kernel::Activation kind) : kind_(kind) {}
  at::Tensor forward(const at::Tensor& x) override { return functional::activation(kind_, x); }
  bool takes_packed_rows() const override { return true; }
  std::optional<kernel::Activation> activation() const override { return kind_; }

 private:
  kernel::Activation kind_;
};

class Pointwise final : public Layer {
 public:
  explicit Pointwise(std::function<at::Tensor(const at::Tensor&)> function)
      : function_(std::move(function)) {}
  at::Tensor forward(const at::Tensor& x) override { return function_(x); }
  bool takes_packed_rows() const override { return true; }

 private:
  std::function<at::Tensor(const at::Tensor&)> function_;
};

void require_numbers(const LayerContext& context) {
  context.require(context.shape.kind != Shape::Kind::kTokens,
                  "needs numbers, but its input is tokens; put an embedding before it");
}

std::unique_ptr<Layer> make(LayerContext& context, kernel::Activation kind) {
  require_numbers(context);
  return std::make_unique<KernelActivation>(kind);
}

std::unique_ptr<Layer> make(LayerContext& context,
                            std::function<at::Tensor(const at::Tensor&)> function) {
  require_numbers(context);
  return std::make_unique<Pointwise>(std::move(function));
}

}  // namespace

void visit(config::Visitor& visitor, GeluConfig& config) {
  visitor.field({.name = "approximate", .help = "use the tanh approximation, as GPT-2 does"},
                config.approximate);
}

void visit(config::Visitor& visitor, LeakyReluConfig& config) {
  visitor.field({.name = "negative_slope", .help = "slope below 0", .min = 0},
                config.negative_slope);
}

void visit(config::Visitor& visitor, EluConfig& config) {
  visitor.field({.name = "alpha", .help = "limit below 0", .min = 0}, config.alpha);
}

std::unique_ptr<Layer> make_relu(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, kernel::Activation::kRelu);
}

std::unique_ptr<Layer> make_silu(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, kernel::Activation::kSilu);
}

std::unique_ptr<Layer> make_gelu(const GeluConfig& config, LayerContext& context) {
  return make(context,
              config.approximate ? kernel::Activation::kGeluTanh : kernel::Activation::kGelu);
}

std::unique_ptr<Layer> make_tanh(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, [](const at::Tensor& x) { return x.tanh(); });
}

std::unique_ptr<Layer> make_sigmoid(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, [](const at::Tensor& x) { return x.sigmoid(); });
}

std::unique_ptr<Layer> make_hardswish(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, [](const at::Tensor& x) { return at::hardswish(x); });
}

std::unique_ptr<Layer> make_mish(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, [](const at::Tensor& x) { return at::mish(x); });
}

std::unique_ptr<Layer> make_softplus(const NoOptions& /*config*/, LayerContext& context) {
  return make(context, [](const at::Tensor& x) { return at::softplus(x); });
}

std::unique_ptr<Layer> make_leaky_relu(const LeakyReluConfig& config, LayerContext& context) {
  return make(context, [slope = config.negative_slope](const at::Tensor& x) {
    return at::leaky_relu(x, slope);
  });
}

std::unique_ptr<Layer> make_elu(const EluConfig& config, LayerContext& context) {
  return make(context, [alpha = config.alpha](const at::Tensor& x) { return at::elu(x, alpha); });
}

}  // namespace gallop::model
