#include "gallop/model/layer/normalization.h"

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/group_norm.h"
#include "gallop/model/layers.h"

namespace gallop::model {

namespace {

class BatchNorm final : public Layer {
 public:
  BatchNorm(LayerContext& context, double momentum)
      : norm_(std::make_shared<BatchNorm2d>(
            context.initializer,
            BatchNorm2d::Options{.channels = context.shape.channels(), .momentum = momentum})) {}

  at::Tensor forward(const at::Tensor& x) override {
    return norm_->forward(as_image(x)).view(x.sizes());
  }
  bool fuses(kernel::Activation kind) const override { return kind == kernel::Activation::kRelu; }
  at::Tensor forward_activated(const at::Tensor& x, kernel::Activation /*kind*/) override {
    return norm_->forward_relu(as_image(x)).view(x.sizes());
  }
  std::shared_ptr<torch::nn::Module> module() const override { return norm_; }

 private:
  // Views rows of channels as images of one pixel.
  static at::Tensor as_image(const at::Tensor& x) {
    return x.dim() == 4 ? x : x.reshape({-1, x.size(-1), 1, 1});
  }

  std::shared_ptr<BatchNorm2d> norm_;
};

class LayerNorm final : public Layer {
 public:
  LayerNorm(LayerContext& context, const Norm::Options& options)
      : norm_(std::make_shared<Norm>(context.initializer, options)) {}

  at::Tensor forward(const at::Tensor& x) override { return norm_->forward(x); }
  bool takes_packed_rows() const override { return true; }
  std::shared_ptr<torch::nn::Module> module() const override { return norm_; }

 private:
  std::shared_ptr<Norm> norm_;
};

class GroupNorm final : public Layer {
 public:
  GroupNorm(LayerContext& context, const GroupNormConfig& config) : config_(config) {
    const int64_t channels = context.shape.channels();
    weight_ = module_->register_parameter("weight", context.initializer.constant(channels, 1));
    bias_ = module_->register_parameter("bias", context.initializer.constant(channels, 0));
  }

  at::Tensor forward(const at::Tensor& x) override {
    return functional::group_norm(x, config_.groups, weight_, bias_, config_.eps);
  }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  struct Weights : torch::nn::Module {};

  GroupNormConfig config_;
  std::shared_ptr<Weights> module_ = std::make_shared<Weights>();
  at::Tensor weight_, bias_;
};

class Dropout final : public Layer {
 public:
  explicit Dropout(double p) : p_(p) {}

  at::Tensor forward(const at::Tensor& x) override {
    return functional::dropout(x, p_, module_->is_training());
  }
  bool takes_packed_rows() const override { return true; }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  struct Mode : torch::nn::Module {};

  double p_;
  std::shared_ptr<Mode> module_ = std::make_shared<Mode>();
};

const config::Field kEps{
    .name = "eps", .help = "epsilon added to the variance", .min = 0, .above_min = true};

void require_rows(const LayerContext& context) {
  const auto kind = context.shape.kind;
  if (kind == Shape::Kind::kSequence || kind == Shape::Kind::kVector) return;
  context.fail("needs a vector or a sequence, but its input is " + context.shape.describe() +
               (kind == Shape::Kind::kImage ? "; use batch-norm or group-norm"
                                            : "; put an embedding before it"));
}

}  // namespace

void visit(config::Visitor& visitor, BatchNormConfig& config) {
  config::Field field = kBatchNormMomentum;
  field.name = "momentum";
  visitor.field(field, config.momentum);
}

void visit(config::Visitor& visitor, LayerNormConfig& config) {
  visitor.field(kEps, config.eps);
  visitor.field({.name = "bias", .help = "add a learned bias"}, config.bias);
}

void visit(config::Visitor& visitor, RmsNormConfig& config) { visitor.field(kEps, config.eps); }

void visit(config::Visitor& visitor, GroupNormConfig& config) {
  visitor.field({.name = "groups", .help = "groups of channels", .min = 1}, config.groups);
  visitor.field(kEps, config.eps);
}

void visit(config::Visitor& visitor, DropoutConfig& config) {
  config::Field field = kDropout;
  field.name = "p";
  visitor.field(field, config.p);
}

std::unique_ptr<Layer> make_batch_norm(const BatchNormConfig& config, LayerContext& context) {
  context.require(context.shape.kind != Shape::Kind::kTokens,
                  "needs channels, but its input is tokens; put an embedding before it");
  context.require_unpadded("use layer-norm");
  return std::make_unique<BatchNorm>(context, config.momentum);
}

std::unique_ptr<Layer> make_layer_norm(const LayerNormConfig& config, LayerContext& context) {
  require_rows(context);
  return std::make_unique<LayerNorm>(
      context,
      Norm::Options{.width = context.shape.channels(), .eps = config.eps, .bias = config.bias});
}

std::unique_ptr<Layer> make_rms_norm(const RmsNormConfig& config, LayerContext& context) {
  require_rows(context);
  return std::make_unique<LayerNorm>(
      context,
      Norm::Options{
          .width = context.shape.channels(), .eps = config.eps, .bias = false, .rms = true});
}

std::unique_ptr<Layer> make_group_norm(const GroupNormConfig& config, LayerContext& context) {
  context.require_kind(Shape::Kind::kImage, "use layer-norm");
  context.require(context.shape.channels() % config.groups == 0,
                  "groups of " + std::to_string(config.groups) + " must divide the " +
                      std::to_string(context.shape.channels()) + " channels of its input");
  return std::make_unique<GroupNorm>(context, config);
}

std::unique_ptr<Layer> make_dropout(const DropoutConfig& config, LayerContext& context) {
  context.require(context.shape.kind != Shape::Kind::kTokens,
                  "needs numbers, but its input is tokens; put an embedding before it");
  return std::make_unique<Dropout>(config.p);
}

}  // namespace gallop::model
