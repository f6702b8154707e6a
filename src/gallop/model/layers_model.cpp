#include "gallop/model/layers_model.h"

#include <utility>

#include "gallop/model/fields.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/model/layer/containers.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

// Sets a tensor as long as it lives.
class TensorScope {
 public:
  TensorScope(at::Tensor& place, const at::Tensor& tensor) : place_(place) { place_ = tensor; }
  ~TensorScope() { place_ = at::Tensor(); }
  TensorScope(const TensorScope&) = delete;
  TensorScope& operator=(const TensorScope&) = delete;

 private:
  at::Tensor& place_;
};

class Layers final : public Network {
 public:
  /// `mask` is that of the layers; null if nothing is padded. `view_dim`: the dimension of inputs
  /// along which a sample has several texts or other views; 0 if it has one.
  Layers(std::unique_ptr<Sequential> layers, std::shared_ptr<SequenceMask> mask, int64_t view_dim)
      : layers_(std::move(layers)), mask_(std::move(mask)), view_dim_(view_dim) {
    register_module("layers", layers_->module());
    for (size_t i = 0; i < layers_->size(); ++i) {
      const auto module = (*layers_)[i].module();
      if (module && !module->children().empty()) blocks_.push_back(i);
    }
  }

  at::Tensor forward(const at::Tensor& x) override { return run(x, layers_->size()); }

  // Each layer is a block, with an activation that it computes. Padding is known to all layers, and
  // several views of a sample are one batch only within.
  std::vector<std::string> cut_modules() const override {
    std::vector<std::string> modules;
    if (mask_ || view_dim_ > 0) return modules;
    for (const size_t i : starts()) modules.push_back("layers." + std::to_string(i));
    return modules;
  }

  Output forward_blocks(const at::Tensor& x, int64_t begin, int64_t end) override {
    const std::vector<size_t> starts = this->starts();
    const size_t first = starts[static_cast<size_t>(begin)];
    if (static_cast<size_t>(end) < starts.size()) {
      return {run_layers(x, starts[static_cast<size_t>(end)], first)};
    }
    const at::Tensor weight = head_weight();
    return {run_layers(x, layers_->size() - (weight.defined() ? 1 : 0), first), weight};
  }

  Output forward_to_head(const at::Tensor& x) override {
    const at::Tensor weight = head_weight();
    if (!weight.defined()) return {forward(x)};
    return {run(x, layers_->size() - 1), weight};
  }

  bool takes_packed_rows() const override { return mask_ && layers_->takes_packed_rows(); }
  Output forward_packed(const at::Tensor& x, const at::Tensor& position_ids) override {
    const TensorScope scope(position_ids_, position_ids);
    return forward_to_head(x);
  }

  /// The number of layers that contain layers.
  int64_t blocks() const override { return static_cast<int64_t>(blocks_.size()); }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    std::vector<std::shared_ptr<torch::nn::Module>> modules;
    for (const size_t i : blocks_) modules.push_back((*layers_)[i].module());
    return modules;
  }

 private:
  // With several views per sample, runs the layers on them as one batch.
  at::Tensor run(const at::Tensor& input, size_t end) const {
    if (view_dim_ == 0) return run_layers(input, end);
    const int64_t samples = input.size(0), views = input.size(view_dim_);
    const at::Tensor each = run_layers(input.transpose(1, view_dim_).flatten(0, 1), end);
    return each.reshape({samples, views, each.size(1)});
  }

  // Undefined unless the last layer of all is a linear one without a bias; that of a container is
  // computed by it.
  at::Tensor head_weight() const {
    return layers_->size() == 0 ? at::Tensor() : (*layers_)[layers_->size() - 1].head_weight();
  }

  // The layers that are run, without activations that others compute.
  std::vector<size_t> starts() const {
    std::vector<size_t> all;
    for (size_t i = 0; i < layers_->size(); i = layers_->next(i)) all.push_back(i);
    return all;
  }

  at::Tensor run_layers(const at::Tensor& input, size_t end, size_t begin = 0) const {
    at::Tensor x = input;
    if (mask_) {
      *mask_ = {input.ge(0), position_ids_};
      x = input.clamp_min(0);
    }
    size_t block = 0;
    for (size_t i = begin; i < end; i = layers_->next(i)) {
      while (block < blocks_.size() && blocks_[block] < i) ++block;
      const bool is_block = block < blocks_.size() && blocks_[block] == i;
      if (!is_block) {
        x = layers_->run(i, x);
        continue;
      }
      x = run_block(block, x, [&](const at::Tensor& in) {
        return recomputes(block) ? recomputed(i, in) : layers_->run(i, in);
      });
    }
    return x;
  }

  // The mask is an input, because another batch may have run before the part is recomputed.
  at::Tensor recomputed(size_t layer, const at::Tensor& x) const {
    const auto part = [this, layer](const std::vector<at::Tensor>& in) {
      if (mask_) *mask_ = {in[1], in.size() > 2 ? in[2] : at::Tensor()};
      return std::vector<at::Tensor>{layers_->run(layer, in[0])};
    };
    std::vector<at::Tensor> in = {x};
    if (mask_) in.push_back(mask_->is_token_NT);
    if (mask_ && mask_->position_ids_NT.defined()) in.push_back(mask_->position_ids_NT);
    return functional::recompute(part, in, (*layers_)[layer].module()->parameters())[0];
  }

  std::unique_ptr<Sequential> layers_;
  std::shared_ptr<SequenceMask> mask_;
  int64_t view_dim_;
  at::Tensor position_ids_;     // Position ids of a packed batch, in forward_packed().
  std::vector<size_t> blocks_;  // Their indices in `layers_`.
};

Shape input_of(const Task& task) {
  if (task.kind == Task::Kind::kNumbers) {
    if (task.context == 0) return {.sizes = {task.features}};
    return {.kind = Shape::Kind::kSequence, .sizes = {task.context, task.features}};
  }
  if (task.kind == Task::Kind::kText) {
    return {.kind = Shape::Kind::kTokens, .sizes = {task.context}};
  }
  return {.kind = Shape::Kind::kImage, .sizes = {task.channels, task.height, task.width}};
}

// The output shape; if the task leaves the size open, that of `made`.
Shape output_of(const Task& task, const Shape& made) {
  if (task.classes == 0) {
    return {.kind = Shape::Kind::kVector, .sizes = {made.channels()}};
  }
  if (task.sequences) {
    const bool is_sequence = made.kind == Shape::Kind::kSequence;
    return {.kind = Shape::Kind::kSequence,
            .sizes = {is_sequence ? made.sizes.front() : 0, task.classes}};
  }
  if (!task.is_per_element()) return {.kind = Shape::Kind::kVector, .sizes = {task.classes}};
  if (task.kind == Task::Kind::kText) {
    return {.kind = Shape::Kind::kSequence, .sizes = {task.context, task.classes}};
  }
  return {.kind = Shape::Kind::kImage, .sizes = {task.classes, task.height, task.width}};
}

std::string embedding_of(const Task& task) {
  if (task.kind == Task::Kind::kText) {
    return "a vector, the embedding of a text; end with global-avg-pool, or with it and linear";
  }
  return "a vector, the embedding of a view; end with global-avg-pool or flatten, or with it and "
         "linear";
}

// Texts [N, T, views] are ragged along T; other inputs are [N, views, ...].
int64_t view_dim_of(const Task& task) {
  if (task.views == 1) return 0;
  return task.kind == Task::Kind::kText ? 2 : 1;
}

}  // namespace

LayersConfig::LayersConfig(const config::Catalog& models)
    : layers(dynamic_cast<const ModelRegistry&>(models).layers) {}

void visit(config::Visitor& visitor, LayersConfig& config) {
  visitor.field({.name = "layers", .help = "layers, applied in this order"}, config.layers);
  visitor.field(conv_init_field(), config.conv_init);
  visitor.field({.name = "linear_init",
                 .help = "weight initialization of linear layers",
                 .choices = init_names()},
                config.linear_init);
}

std::unique_ptr<Model> make_layers(const LayersConfig& config, const Task& task,
                                   InitialWeights weights) {
  require(task.classes > 0 || task.views > 1, "model 'layers' needs at least one output");
  require_no_categories(task, "layers");
  require(task.kind != Task::Kind::kNumbers || task.features > 0,
          "model 'layers' reads rows that are vectors [C], sequences [T, C] or images [C, H, W]; "
          "reshape the array of the input");
  Initializer initializer(weights);
  const auto mask = task.padded ? std::make_shared<SequenceMask>() : nullptr;
  LayerContext context{.initializer = initializer,
                       .shape = input_of(task),
                       .path = "model.layers",
                       .classes = task.classes,
                       .tokens = task.tokens(),
                       .causal = task.kind == Task::Kind::kText && !task.bidirectional,
                       .is_head = true,
                       .mask = mask,
                       .conv_init = parse_init(config.conv_init),
                       .linear_init = parse_init(config.linear_init)};
  context.require(!config.layers.items.empty(), "needs at least one layer");
  auto layers = std::make_unique<Sequential>(config.layers, context);
  const Shape wanted = output_of(task, context.shape);
  if (context.shape != wanted) {
    context.path += "." + std::to_string(layers->size() - 1);
    const bool needs_pooling =
        wanted.kind == Shape::Kind::kVector && context.shape.kind != wanted.kind;
    std::string remedy = "; end with linear, which has as many outputs by itself";
    if (needs_pooling) remedy = "; end with global-avg-pool or flatten, and linear";
    if (task.sequences) {
      context.fail("the last layer makes " + context.shape.describe() +
                   ", but the data need a sequence of any length with " +
                   std::to_string(task.classes) + " channels, one for each class; end with linear" +
                   (context.shape.kind == Shape::Kind::kImage ? " after to-sequence" : ""));
    }
    context.fail("the last layer makes " + context.shape.describe() + ", but the data need " +
                 (task.classes == 0 ? embedding_of(task) : wanted.describe() + remedy));
  }
  return make_model(std::make_shared<Layers>(std::move(layers), mask, view_dim_of(task)));
}

}  // namespace gallop::model
