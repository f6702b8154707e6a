// Shapes: B batch, T tokens (patches and the class token), C width.
#include "gallop/model/vit.h"

#include <cmath>

#include <ATen/ops/_upsample_bicubic2d_aa.h>
#include <ATen/ops/cat.h>
#include <fmt/format.h>

#include "gallop/model/fields.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/stochastic_depth.h"
#include "gallop/model/functional/sum_before_norm.h"
#include "gallop/model/network.h"
#include "gallop/model/transformer_layer.h"

namespace gallop::model {

namespace {

constexpr double kStd = 0.02;
constexpr double kNormEps = 1e-6;

InitScheme linear_init(const VitConfig& config) {
  if (config.linear_init != "timm") return parse_init(config.linear_init);
  return {.kind = InitScheme::Kind::kTruncatedNormal, .std = kStd};
}

Norm::Options norm_options(const VitConfig& config) {
  return {.width = config.width, .eps = kNormEps};
}

int64_t inner_width(const VitConfig& config) {
  return static_cast<int64_t>(static_cast<double>(config.width) * config.mlp_ratio);
}

TransformerLayer::Options layer_options(const VitConfig& config, double stochastic_depth) {
  return {.norm = norm_options(config),
          .attention = {.width = config.width,
                        .heads = config.heads,
                        .dropout = config.dropout,
                        .input_name = "qkv",
                        .output_name = "proj",
                        .input_init = linear_init(config),
                        .output_init = linear_init(config)},
          .feed_forward = {.width = config.width,
                           .inner = inner_width(config),
                           .inner_dropout = config.dropout,
                           .dropout = config.dropout,
                           .expand_name = "fc1",
                           .contract_name = "fc2",
                           .expand_init = linear_init(config),
                           .contract_init = linear_init(config)},
          .norm1_name = "norm1",
          .norm2_name = "norm2",
          .stochastic_depth = stochastic_depth};
}

class Vit final : public Network {
 public:
  Vit(const VitConfig& config, const Task& task, InitialWeights weights)
      : patch_(config.patch),
        rows_(task.height / config.patch),
        columns_(task.width / config.patch),
        dropout_(config.dropout) {
    Initializer init(weights);
    const bool token = config.pool == "token";
    if (token) {
      class_token_ = register_parameter("cls_token", init.normal({1, 1, config.width}, 1e-6));
    }
    positions_ = register_parameter(
        "pos_embed",
        init.truncated_normal({1, rows_ * columns_ + (token ? 1 : 0), config.width}, kStd, 2));
    const auto embed = register_module("patch_embed", std::make_shared<Group>());
    patches_ = embed->register_module(
        "proj",
        std::make_shared<Conv2d>(init, Conv2d::Options{.in = task.channels,
                                                       .out = config.width,
                                                       .window = config.patch,
                                                       .stride = config.patch,
                                                       .bias = true,
                                                       .init = parse_init(config.conv_init)}));
    const auto rates = functional::stochastic_depth_rates(config.stochastic_depth, config.depth);
    const auto list = register_module("blocks", std::make_shared<Group>());
    for (const double rate : rates) {
      layers_.push_back(list->register_module(
          std::to_string(layers_.size()),
          std::make_shared<TransformerLayer>(init, layer_options(config, rate))));
    }
    norm_ = register_module(token ? "norm" : "fc_norm",
                            std::make_shared<Norm>(init, norm_options(config)));
    head_ = register_module(
        "head", std::make_shared<Linear>(init, Linear::Options{.in = config.width,
                                                               .out = task.classes,
                                                               .init = linear_init(config),
                                                               .is_head = true}));
  }

  bool takes_any_size() const override { return true; }
  int64_t blocks() const override { return static_cast<int64_t>(layers_.size()); }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    return {layers_.begin(), layers_.end()};
  }

  std::vector<std::string> cut_modules() const override {
    return numbered("blocks.", layers_.size());
  }

  // The embedding and the head, which are small, stay whole.
  void parallelize(const std::shared_ptr<TensorParallel>& parallel) override {
    parallel_ = parallel;
    for (const auto& layer : layers_) layer->parallelize(parallel);
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward_blocks(input, 0, blocks()).x;
  }

  void begin_pass(const at::Tensor& images) override {
    if (!parallel_) return;
    const int64_t patches = (images.size(2) / patch_) * (images.size(3) / patch_);
    parallel_->begin_pass(patches + (class_token_.defined() ? 1 : 0));
  }

  Output forward_blocks(const at::Tensor& x, int64_t begin, int64_t end) override {
    if (begin == 0) begin_pass(x);
    Stream stream_BTC{begin == 0 ? embedded(x) : x};
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      auto& layer = *layers_[i];
      stream_BTC = run_block(i, stream_BTC, [&](const Stream& in_BTC) {
        return (recomputes(i) ? layer.recomputed(in_BTC) : layer.forward(in_BTC)).stream_BTC;
      });
    }
    if (end < blocks()) return {functional::sum_before_norm(stream_BTC)};
    auto y_BTC = functional::sum_of(stream_BTC);
    if (parallel_) y_BTC = parallel_->gather_tokens(y_BTC);
    return {head_->forward(
        norm_->forward(class_token_.defined() ? y_BTC.select(1, 0) : y_BTC.mean(1)))};
  }

 private:
  struct Group : torch::nn::Module {};

  at::Tensor embedded(const at::Tensor& input) const {
    require(input.size(2) >= patch_ && input.size(3) >= patch_,
            fmt::format("vit: images of {}x{} are smaller than a patch of {}", input.size(2),
                        input.size(3), patch_));
    const auto patches_BCHW = patches_->forward(input);
    auto x_BTC = patches_BCHW.flatten(2).transpose(1, 2);
    if (class_token_.defined()) {
      x_BTC =
          at::cat({class_token_.expand({x_BTC.size(0), -1, -1}).to(x_BTC.scalar_type()), x_BTC}, 1);
    }
    // The kernels take rows of C; without a class token they are columns here.
    const bool is_narrow = positions_.scalar_type() == at::kBFloat16;
    const auto positions_1TC = is_narrow ? positions_.to(at::kFloat) : positions_;
    x_BTC = (x_BTC + positions_for(positions_1TC, patches_BCHW.size(2), patches_BCHW.size(3)))
                .contiguous();
    x_BTC = functional::dropout(x_BTC, dropout_, is_training());
    return parallel_ ? parallel_->scatter_tokens(x_BTC) : x_BTC;
  }

  // Those of a grid of other size are interpolated as by timm's resample_abs_pos_embed().
  at::Tensor positions_for(const at::Tensor& positions_1TC, int64_t rows, int64_t columns) const {
    if (rows == rows_ && columns == columns_) return positions_1TC;
    const int64_t tokens = class_token_.defined() ? 1 : 0;
    const auto grid_1CHW = positions_1TC.slice(1, tokens)
                               .reshape({1, rows_, columns_, positions_1TC.size(2)})
                               .permute({0, 3, 1, 2});
    const auto resized_1TC = at::_upsample_bicubic2d_aa(grid_1CHW, {rows, columns},
                                                        /*align_corners=*/false)
                                 .flatten(2)
                                 .transpose(1, 2);
    return tokens == 0 ? resized_1TC : at::cat({positions_1TC.slice(1, 0, tokens), resized_1TC}, 1);
  }

  int64_t patch_;
  int64_t rows_, columns_;  // Rows and columns of patches, in images of the task's size.
  double dropout_;
  std::shared_ptr<const TensorParallel> parallel_;  // Null if it is whole.
  at::Tensor class_token_;
  at::Tensor positions_;
  std::shared_ptr<Conv2d> patches_;
  std::vector<std::shared_ptr<TransformerLayer>> layers_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace

void visit(config::Visitor& visitor, VitConfig& config) {
  visitor.field(kPatch, config.patch);
  visitor.field({.name = "width", .help = "embedding dimension", .min = 1}, config.width);
  visitor.field({.name = "depth", .help = "transformer layers", .min = 1}, config.depth);
  visitor.field(kHeads, config.heads);
  visitor.field(
      {.name = "mlp_ratio",
       .help = "ratio of the feed-forward layer's hidden width to the embedding dimension",
       .min = 0,
       .above_min = true},
      config.mlp_ratio);
  visitor.field(kDropout, config.dropout);
  visitor.field(kStochasticDepth, config.stochastic_depth);
  visitor.field(
      {.name = "pool", .help = "pooling before the classifier", .choices = {"token", "mean"}},
      config.pool);
  visitor.field(patch_init_field(), config.conv_init);
  auto inits = init_names();
  inits.insert(inits.begin(), "timm");
  visitor.field({.name = "linear_init",
                 .help = "weight initialization of the other layers; timm: truncated normal",
                 .choices = inits},
                config.linear_init);
}

std::unique_ptr<Model> make_vit(const VitConfig& config, const Task& task, InitialWeights weights) {
  require_images(task, "vit");
  require(config.patch > 0 && config.width > 0 && config.depth > 0 && config.heads > 0,
          "vit: patch, width, depth and heads must be positive");
  require_heads(config.width, config.heads, "vit");
  require_stochastic_depth(config.stochastic_depth, config.depth, "vit");
  const auto size = std::to_string(task.height) + "x" + std::to_string(task.width);
  require(
      task.height >= config.patch && task.width >= config.patch,
      "vit: images of " + size + " are smaller than a patch of " + std::to_string(config.patch));
  require(task.height % config.patch == 0 && task.width % config.patch == 0,
          "vit: patches of " + std::to_string(config.patch) + " do not fill images of " + size);
  require(inner_width(config) > 0, "vit: mlp_ratio leaves no inner width");
  return make_model(std::make_shared<Vit>(config, task, weights));
}

}  // namespace gallop::model
