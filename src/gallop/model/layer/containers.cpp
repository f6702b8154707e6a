#include "gallop/model/layer/containers.h"

#include <algorithm>

#include <ATen/ops/cat.h>

namespace gallop::model {

namespace {

struct Group : torch::nn::Module {};

// Builds the layer at `path` and updates `context.shape` from its input to its output shape.
std::unique_ptr<Layer> build(const config::Component& component, LayerContext& context,
                             const std::string& path, bool is_head) {
  LayerContext inner = context;
  inner.path = path + "." + component.name();
  inner.is_head = is_head;
  const auto& registry = dynamic_cast<const LayerRegistry&>(component.catalog());
  auto layer = registry.build(component, inner);
  context.shape = inner.shape;
  return layer;
}

template <typename Layers>
bool all_take_packed_rows(const Layers& layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [](const auto& layer) { return layer->takes_packed_rows(); });
}

class Residual final : public Layer {
 public:
  Residual(const ResidualConfig& config, LayerContext& context) {
    context.require(!config.layers.items.empty(), "needs at least one layer");
    LayerContext along = context, past = context;
    along.path = context.path + ".layers";
    past.path = context.path + ".shortcut";
    along.is_head = past.is_head = false;
    layers_ = std::make_unique<Sequential>(config.layers, along);
    module_->register_module("layers", layers_->module());
    if (!config.shortcut.items.empty()) {
      shortcut_ = std::make_unique<Sequential>(config.shortcut, past);
      module_->register_module("shortcut", shortcut_->module());
    }
    context.require(along.shape == past.shape,
                    "its layers make " + along.shape.describe() + ", but its shortcut " +
                        past.shape.describe() +
                        (shortcut_ ? "; both must be the same"
                                   : "; give it a shortcut, such as [{conv: {channels: " +
                                         std::to_string(along.shape.channels()) +
                                         ", kernel: 1}}] with the same stride"));
    context.shape = along.shape;
  }

  at::Tensor forward(const at::Tensor& x) override {
    return layers_->forward(x).add(shortcut_ ? shortcut_->forward(x) : x);
  }
  bool takes_packed_rows() const override {
    return layers_->takes_packed_rows() && (!shortcut_ || shortcut_->takes_packed_rows());
  }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  std::unique_ptr<Sequential> layers_, shortcut_;
  std::shared_ptr<torch::nn::Module> module_ = std::make_shared<Group>();
};

class Branches final : public Layer {
 public:
  Branches(const BranchesConfig& config, LayerContext& context, bool concatenates)
      : concatenates_(concatenates), is_image_(false) {
    context.require(config.branches.items.size() >= 2, "needs at least two branches");
    const Shape input = context.shape;
    Shape sum;
    for (size_t i = 0; i < config.branches.items.size(); ++i) {
      context.shape = input;
      const std::string number = std::to_string(i);
      layers_.push_back(
          build(config.branches.items[i], context, context.path + ".branches." + number, false));
      if (const auto module = layers_.back()->module()) module_->register_module(number, module);
      const Shape& made = context.shape;
      if (i == 0) {
        sum = made;
        continue;
      }
      const Shape alike = concatenates_ ? made.with_channels(sum.channels()) : made;
      context.require(alike == sum && made.kind != Shape::Kind::kTokens,
                      "branch " + number + " makes " + made.describe() +
                          ", which does not go with " + sum.describe() + " of those before it");
      if (concatenates_) sum = sum.with_channels(sum.channels() + made.channels());
    }
    is_image_ = sum.kind == Shape::Kind::kImage;
    context.shape = sum;
  }

  at::Tensor forward(const at::Tensor& x) override {
    std::vector<at::Tensor> outputs;
    for (const auto& layer : layers_) outputs.push_back(layer->forward(x));
    if (concatenates_) return at::cat(outputs, is_image_ ? 1 : -1);
    at::Tensor sum = outputs.front();
    for (size_t i = 1; i < outputs.size(); ++i) sum = sum.add(outputs[i]);
    return sum;
  }
  bool takes_packed_rows() const override { return all_take_packed_rows(layers_); }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  bool concatenates_, is_image_;
  std::vector<std::unique_ptr<Layer>> layers_;
  std::shared_ptr<torch::nn::Module> module_ = std::make_shared<Group>();
};

class Repeat final : public Layer {
 public:
  Repeat(const RepeatConfig& config, LayerContext& context) {
    context.require(!config.layers.items.empty(), "needs at least one layer");
    for (int64_t i = 0; i < config.times; ++i) {
      LayerContext inner = context;
      inner.path = context.path + ".layers";
      inner.is_head = context.is_head && i + 1 == config.times;
      layers_.push_back(std::make_unique<Sequential>(config.layers, inner));
      module_->register_module(std::to_string(i), layers_.back()->module());
      context.shape = inner.shape;
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    at::Tensor x = input;
    for (const auto& layer : layers_) x = layer->forward(x);
    return x;
  }
  bool takes_packed_rows() const override { return all_take_packed_rows(layers_); }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  std::vector<std::unique_ptr<Sequential>> layers_;
  std::shared_ptr<torch::nn::Module> module_ = std::make_shared<Group>();
};

class Identity final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& x) override { return x; }
  bool takes_packed_rows() const override { return true; }
};

const config::Field kLayers{.name = "layers", .help = "layers, applied in this order"};

}  // namespace

Sequential::Sequential(const config::ComponentList& list, LayerContext& context)
    : module_(std::make_shared<Group>()) {
  for (size_t i = 0; i < list.items.size(); ++i) {
    const std::string number = std::to_string(i);
    const bool is_head = context.is_head && i + 1 == list.items.size();
    layers_.push_back(build(list.items[i], context, context.path + "." + number, is_head));
    if (const auto module = layers_.back()->module()) module_->register_module(number, module);
  }
}

bool Sequential::is_fused(size_t i) const {
  if (i + 1 >= layers_.size()) return false;
  const auto activation = layers_[i + 1]->activation();
  return activation && layers_[i]->fuses(*activation);
}

at::Tensor Sequential::run(size_t i, const at::Tensor& x) const {
  if (!is_fused(i)) return layers_[i]->forward(x);
  return layers_[i]->forward_activated(x, *layers_[i + 1]->activation());
}

at::Tensor Sequential::run_all(const at::Tensor& input, size_t end) const {
  at::Tensor x = input;
  for (size_t i = 0; i < end; i = next(i)) x = run(i, x);
  return x;
}

at::Tensor Sequential::forward(const at::Tensor& x) { return run_all(x, layers_.size()); }

bool Sequential::takes_packed_rows() const { return all_take_packed_rows(layers_); }

void visit(config::Visitor& visitor, SequentialConfig& config) {
  visitor.field(kLayers, config.layers);
}

void visit(config::Visitor& visitor, ResidualConfig& config) {
  visitor.field(kLayers, config.layers);
  visitor.field({.name = "shortcut", .help = "layers of the shortcut; none: the identity"},
                config.shortcut);
}

void visit(config::Visitor& visitor, RepeatConfig& config) {
  visitor.field({.name = "times", .help = "number of repetitions", .min = 1, .max = 1024},
                config.times);
  visitor.field(kLayers, config.layers);
}

void visit(config::Visitor& visitor, BranchesConfig& config) {
  visitor.field({.name = "branches", .help = "layers that read the same input; see sequential"},
                config.branches);
}

void visit(config::Visitor& /*visitor*/, NoOptions& /*config*/) {}

std::unique_ptr<Layer> make_sequential(const SequentialConfig& config, LayerContext& context) {
  LayerContext inner = context;
  inner.path = context.path + ".layers";
  auto layer = std::make_unique<Sequential>(config.layers, inner);
  context.shape = inner.shape;
  return layer;
}

std::unique_ptr<Layer> make_residual(const ResidualConfig& config, LayerContext& context) {
  return std::make_unique<Residual>(config, context);
}

std::unique_ptr<Layer> make_repeat(const RepeatConfig& config, LayerContext& context) {
  return std::make_unique<Repeat>(config, context);
}

std::unique_ptr<Layer> make_concat(const BranchesConfig& config, LayerContext& context) {
  return std::make_unique<Branches>(config, context, /*concatenates=*/true);
}

std::unique_ptr<Layer> make_add(const BranchesConfig& config, LayerContext& context) {
  return std::make_unique<Branches>(config, context, /*concatenates=*/false);
}

std::unique_ptr<Layer> make_identity(const NoOptions& /*config*/, LayerContext& /*context*/) {
  return std::make_unique<Identity>();
}

}  // namespace gallop::model
