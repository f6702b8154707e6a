#include "gallop/model/layer/dense.h"

#include <functional>
#include <numeric>

#include "gallop/model/layers.h"

namespace gallop::model {

namespace {

class LinearLayer final : public Layer {
 public:
  LinearLayer(Initializer& initializer, const Linear::Options& options)
      : linear_(std::make_shared<Linear>(initializer, options)), has_bias_(options.bias) {}

  at::Tensor forward(const at::Tensor& x) override { return linear_->forward(x); }
  bool takes_packed_rows() const override { return true; }
  bool fuses(kernel::Activation /*kind*/) const override { return true; }
  at::Tensor forward_activated(const at::Tensor& x, kernel::Activation kind) override {
    return linear_->forward(x, kind);
  }
  at::Tensor head_weight() const override { return has_bias_ ? at::Tensor() : linear_->weight(); }
  std::shared_ptr<torch::nn::Module> module() const override { return linear_; }

 private:
  std::shared_ptr<Linear> linear_;
  bool has_bias_;
};

class EmbeddingLayer final : public Layer {
 public:
  EmbeddingLayer(Initializer& initializer, const Embedding::Options& options)
      : embedding_(std::make_shared<Embedding>(initializer, options)) {}

  at::Tensor forward(const at::Tensor& x) override { return embedding_->forward(x); }
  bool takes_packed_rows() const override { return true; }
  std::shared_ptr<torch::nn::Module> module() const override { return embedding_; }

 private:
  std::shared_ptr<Embedding> embedding_;
};

class PositionEmbedding final : public Layer {
 public:
  PositionEmbedding(LayerContext& context, double std) : mask_(context.mask) {
    weight_ =
        module_->register_parameter("weight", context.initializer.normal(context.shape.sizes, std));
  }

  at::Tensor forward(const at::Tensor& x) override {
    if (mask_ && mask_->position_ids_NT.defined()) {
      const at::Tensor& ids = mask_->position_ids_NT;
      return x.add(weight_.index_select(0, ids.flatten()).view(x.sizes()));
    }
    return x.add(weight_.narrow(0, 0, x.size(1)));
  }
  bool takes_packed_rows() const override { return true; }
  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 private:
  struct Weights : torch::nn::Module {};
  std::shared_ptr<Weights> module_ = std::make_shared<Weights>();
  at::Tensor weight_;
  std::shared_ptr<const SequenceMask> mask_;  // Null where nothing is padded.
};

class Flatten final : public Layer {
 public:
  at::Tensor forward(const at::Tensor& x) override { return x.flatten(1); }
};

class ToSequence final : public Layer {
 public:
  explicit ToSequence(bool of_columns) : of_columns_(of_columns) {}

  at::Tensor forward(const at::Tensor& x_NCHW) override {
    if (of_columns_) return x_NCHW.permute({0, 3, 1, 2}).flatten(2);
    return x_NCHW.flatten(2).transpose(1, 2);
  }

 private:
  bool of_columns_;
};

}  // namespace

void visit(config::Visitor& visitor, LinearConfig& config) {
  visitor.field({.name = "features",
                 .help = "output features; 0: the number of classes of the data, or of tokens",
                 .min = 0},
                config.features);
  visitor.field({.name = "bias", .help = "add a learned bias"}, config.bias);
}

void visit(config::Visitor& visitor, EmbeddingConfig& config) {
  visitor.field({.name = "width", .help = "embedding dimension", .min = 1}, config.width);
  visitor.field({.name = "std", .help = "standard deviation of the initial weights", .min = 0},
                config.std);
}

void visit(config::Visitor& visitor, PositionEmbeddingConfig& config) {
  visitor.field({.name = "std", .help = "standard deviation of the initial weights", .min = 0},
                config.std);
}

void visit(config::Visitor& visitor, ToSequenceConfig& config) {
  visitor.field({.name = "steps",
                 .help = "steps of the sequence: pixels, row by row, or columns",
                 .choices = {"pixels", "columns"}},
                config.steps);
}

std::unique_ptr<Layer> make_linear(const LinearConfig& config, LayerContext& context) {
  const auto kind = context.shape.kind;
  if (kind == Shape::Kind::kImage) {
    context.fail("needs a vector or a sequence, but its input is " + context.shape.describe() +
                 "; put flatten, global-avg-pool or to-sequence before it");
  }
  context.require(
      kind != Shape::Kind::kTokens,
      "needs a vector or a sequence, but its input is tokens; put an embedding before it");
  const int64_t out = config.features > 0 ? config.features : context.classes;
  context.require(out > 0, "needs features, the size of the embeddings, which the data leave open");
  auto layer = std::make_unique<LinearLayer>(context.initializer,
                                             Linear::Options{.in = context.shape.channels(),
                                                             .out = out,
                                                             .bias = config.bias,
                                                             .init = context.linear_init,
                                                             .is_head = context.is_head});
  context.shape = context.shape.with_channels(out);
  return layer;
}

std::unique_ptr<Layer> make_embedding(const EmbeddingConfig& config, LayerContext& context) {
  context.require_kind(Shape::Kind::kTokens, "an embedding is the first layer, for text");
  context.require(config.width > 0, "needs width, the embedding dimension");
  auto layer = std::make_unique<EmbeddingLayer>(
      context.initializer,
      Embedding::Options{.count = context.tokens, .width = config.width, .std = config.std});
  context.shape = {.kind = Shape::Kind::kSequence,
                   .sizes = {context.shape.sizes.front(), config.width}};
  return layer;
}

std::unique_ptr<Layer> make_position_embedding(const PositionEmbeddingConfig& config,
                                               LayerContext& context) {
  context.require_sequence();
  return std::make_unique<PositionEmbedding>(context, config.std);
}

std::unique_ptr<Layer> make_flatten(const NoOptions& /*config*/, LayerContext& context) {
  context.require(context.shape.kind != Shape::Kind::kTokens,
                  "needs an image or a sequence, but its input is tokens");
  context.require_unpadded("use global-avg-pool, the mean of the tokens");
  const auto& sizes = context.shape.sizes;
  context.shape = {
      .kind = Shape::Kind::kVector,
      .sizes = {std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>())}};
  return std::make_unique<Flatten>();
}

std::unique_ptr<Layer> make_to_sequence(const ToSequenceConfig& config, LayerContext& context) {
  context.require_kind(Shape::Kind::kImage);
  const int64_t channels = context.shape.sizes[0], height = context.shape.sizes[1];
  const int64_t width = context.shape.sizes[2];
  const bool of_columns = config.steps == "columns";
  context.shape = {.kind = Shape::Kind::kSequence, .sizes = {height * width, channels}};
  if (of_columns) context.shape.sizes = {width, channels * height};
  return std::make_unique<ToSequence>(of_columns);
}

}  // namespace gallop::model
