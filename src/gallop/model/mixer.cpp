// Shapes: B batch, T tokens (patches), C width.
#include "gallop/model/mixer.h"

#include "gallop/model/feed_forward.h"
#include "gallop/model/fields.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/model/functional/sum_before_norm.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

constexpr double kNormEps = 1e-6;

int64_t scaled(int64_t width, double ratio) {
  return static_cast<int64_t>(static_cast<double>(width) * ratio);
}

/// Mixes the tokens of each channel, then the channels of each token, each with a residual.
class MixerBlock final : public torch::nn::Module {
 public:
  MixerBlock(Initializer& init, const MixerConfig& config, int64_t tokens)
      : norm1_(norm(init, config, "norm1")),
        mlp_tokens_(mlp(init, config, "mlp_tokens", tokens, config.token_ratio)),
        norm2_(norm(init, config, "norm2")),
        mlp_channels_(mlp(init, config, "mlp_channels", config.width, config.channel_ratio)) {}

  Stream forward(const Stream& stream_BTC) {
    const auto start = norm1_->forward(stream_BTC);
    // The linear layers take contiguous rows.
    const auto [value_BCT, bias] = mlp_tokens_->forward(start.y.transpose(1, 2).contiguous());
    const at::Tensor mixed_BCT =
        bias.defined() ? value_BCT.add(bias.to(value_BCT.scalar_type())) : value_BCT;
    const auto middle = norm2_->forward(Stream{start.sum, mixed_BCT.transpose(1, 2).contiguous()});
    const Branch fed = mlp_channels_->forward(middle.y);
    return {middle.sum, fed.value, fed.bias};
  }

 private:
  std::shared_ptr<Norm> norm(Initializer& init, const MixerConfig& config, const char* name) {
    return register_module(
        name, std::make_shared<Norm>(init, Norm::Options{.width = config.width, .eps = kNormEps}));
  }
  // The inner width follows from the width of the tokens' embedding, as in the paper's table.
  std::shared_ptr<FeedForward> mlp(Initializer& init, const MixerConfig& config, const char* name,
                                   int64_t width, double ratio) {
    const InitScheme scheme = parse_init(config.linear_init);
    return register_module(name,
                           std::make_shared<FeedForward>(
                               init, FeedForward::Options{.width = width,
                                                          .inner = scaled(config.width, ratio),
                                                          .inner_dropout = config.dropout,
                                                          .dropout = config.dropout,
                                                          .expand_name = "fc1",
                                                          .contract_name = "fc2",
                                                          .expand_init = scheme,
                                                          .contract_init = scheme}));
  }

  std::shared_ptr<Norm> norm1_;
  std::shared_ptr<FeedForward> mlp_tokens_;
  std::shared_ptr<Norm> norm2_;
  std::shared_ptr<FeedForward> mlp_channels_;
};

class Mixer final : public Network {
 public:
  Mixer(const MixerConfig& config, const Task& task, InitialWeights weights)
      : height_(task.height), width_(task.width) {
    Initializer init(weights);
    const auto stem = register_module("stem", std::make_shared<Group>());
    patches_ = stem->register_module(
        "proj",
        std::make_shared<Conv2d>(init, Conv2d::Options{.in = task.channels,
                                                       .out = config.width,
                                                       .window = config.patch,
                                                       .stride = config.patch,
                                                       .bias = true,
                                                       .init = parse_init(config.conv_init)}));
    const int64_t tokens = (task.height / config.patch) * (task.width / config.patch);
    const auto list = register_module("blocks", std::make_shared<Group>());
    for (int64_t i = 0; i < config.depth; ++i) {
      blocks_.push_back(list->register_module(std::to_string(i),
                                              std::make_shared<MixerBlock>(init, config, tokens)));
    }
    norm_ = register_module(
        "norm",
        std::make_shared<Norm>(init, Norm::Options{.width = config.width, .eps = kNormEps}));
    head_ = register_module(
        "head",
        std::make_shared<Linear>(init, Linear::Options{.in = config.width,
                                                       .out = task.classes,
                                                       .init = parse_init(config.linear_init),
                                                       .is_head = true}));
  }

  int64_t blocks() const override { return static_cast<int64_t>(blocks_.size()); }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    return {blocks_.begin(), blocks_.end()};
  }

  std::vector<std::string> cut_modules() const override {
    return numbered("blocks.", blocks_.size());
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward_blocks(input, 0, blocks()).x;
  }

  Output forward_blocks(const at::Tensor& x, int64_t begin, int64_t end) override {
    Stream stream_BTC{begin == 0 ? embedded(x) : x};
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      MixerBlock& block = *blocks_[i];
      stream_BTC = run_block(i, stream_BTC, [&](const Stream& in_BTC) {
        return recomputes(i) ? recomputed(block, in_BTC) : block.forward(in_BTC);
      });
    }
    if (end < blocks()) return {functional::sum_before_norm(stream_BTC)};
    return {head_->forward(norm_->forward(stream_BTC).y.mean(1))};
  }

 private:
  struct Group : torch::nn::Module {};

  at::Tensor embedded(const at::Tensor& input) const {
    require_size(input, height_, width_, "mlp-mixer");
    return patches_->forward(input).flatten(2).transpose(1, 2).contiguous();
  }

  static Stream recomputed(MixerBlock& block, const Stream& stream_BTC) {
    const auto part = [&block](const std::vector<at::Tensor>& in) {
      return std::vector<at::Tensor>{functional::sum_of(block.forward(Stream{in[0]}))};
    };
    return {functional::recompute(part, {functional::sum_of(stream_BTC)}, block.parameters())[0]};
  }

  int64_t height_;
  int64_t width_;
  std::shared_ptr<Conv2d> patches_;
  std::vector<std::shared_ptr<MixerBlock>> blocks_;
  std::shared_ptr<Norm> norm_;
  std::shared_ptr<Linear> head_;
};

}  // namespace

void visit(config::Visitor& visitor, MixerConfig& config) {
  visitor.field(kPatch, config.patch);
  visitor.field({.name = "width", .help = "embedding dimension", .min = 1}, config.width);
  visitor.field({.name = "depth", .help = "blocks", .min = 1}, config.depth);
  visitor.field({.name = "token_ratio",
                 .help = "ratio of the hidden width over tokens to the embedding dimension",
                 .min = 0,
                 .above_min = true},
                config.token_ratio);
  visitor.field({.name = "channel_ratio",
                 .help = "ratio of the hidden width over channels to the embedding dimension",
                 .min = 0,
                 .above_min = true},
                config.channel_ratio);
  visitor.field(kDropout, config.dropout);
  visitor.field(patch_init_field(), config.conv_init);
  visitor.field({.name = "linear_init",
                 .help = "weight initialization of the other layers",
                 .choices = init_names()},
                config.linear_init);
}

std::unique_ptr<Model> make_mixer(const MixerConfig& config, const Task& task,
                                  InitialWeights weights) {
  require_images(task, "mlp-mixer");
  require(config.patch > 0 && config.width > 0 && config.depth > 0,
          "mlp-mixer: patch, width and depth must be positive");
  const auto size = std::to_string(task.height) + "x" + std::to_string(task.width);
  require(
      task.height >= config.patch && task.width >= config.patch &&
          task.height % config.patch == 0 && task.width % config.patch == 0,
      "mlp-mixer: patches of " + std::to_string(config.patch) + " do not fill images of " + size);
  require(scaled(config.width, config.token_ratio) > 0 &&
              scaled(config.width, config.channel_ratio) > 0,
          "mlp-mixer: token_ratio and channel_ratio leave no hidden width");
  return make_model(std::make_shared<Mixer>(config, task, weights));
}

}  // namespace gallop::model
