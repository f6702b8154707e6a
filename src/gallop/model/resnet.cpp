#include "gallop/model/resnet.h"

#include <array>
#include <cmath>
#include <numeric>

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/max_pool2d.h>

#include "gallop/model/fields.h"
#include "gallop/model/functional/global_avg_pool.h"
#include "gallop/model/functional/recompute.h"
#include "gallop/model/functional/stochastic_depth.h"
#include "gallop/model/layers.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

enum class Shortcut { kProjection, kPad, kNone };

// The settings shared by all blocks of a network.
struct Style {
  Shortcut shortcut = Shortcut::kProjection;
  double momentum = 0.1;
  double last_norm_weight = 1;
  InitScheme conv_init;
  std::vector<double> skip_rates;  // One per block.
};

struct Shape {
  bool cifar_form;
  bool bottleneck;
  std::vector<int64_t> blocks;
};

bool is_cifar_depth(int64_t depth) { return depth >= 8 && (depth - 2) % 6 == 0; }

Shape shape_of(int64_t depth) {
  switch (depth) {
    case 18: return {false, false, {2, 2, 2, 2}};
    case 34: return {false, false, {3, 4, 6, 3}};
    case 50: return {false, true, {3, 4, 6, 3}};
    default: break;
  }
  require(is_cifar_depth(depth), "resnet: depth " + std::to_string(depth) +
                                     " is neither 18, 34, 50 nor 6n+2 (8, 14, 20, 26, 32, ...)");
  return {true, false, std::vector<int64_t>(3, (depth - 2) / 6)};
}

int64_t scaled(int64_t channels, double width) {
  return std::max<int64_t>(8, 8 * std::llround(static_cast<double>(channels) * width / 8));
}

// Two 3x3 convolutions, or 1x1, 3x3, 1x1 with four times the channels, plus a shortcut.
class Block final : public torch::nn::Module {
 public:
  Block(Initializer& init, const Style& style, int64_t in, int64_t channels, int64_t stride,
        bool bottleneck, double skip_rate)
      : stride_(stride), shortcut_(style.shortcut), skip_rate_(skip_rate) {
    const int64_t out = bottleneck ? 4 * channels : channels;
    if (bottleneck) {
      add(init, style, {.in = in, .out = channels, .window = 1}, 1);
      add(init, style, {.in = channels, .out = channels, .window = 3, .stride = stride}, 1);
      add(init, style, {.in = channels, .out = out, .window = 1}, style.last_norm_weight);
    } else {
      add(init, style, {.in = in, .out = channels, .window = 3, .stride = stride}, 1);
      add(init, style, {.in = channels, .out = out, .window = 3}, style.last_norm_weight);
    }
    missing_channels_ = out - in;
    if (shortcut_ == Shortcut::kProjection && (stride != 1 || in != out)) {
      add_projection(init, style, {.in = in, .out = out, .window = 1, .stride = stride});
    }
  }

  /// `input` has one tensor for the layers and one for the shortcut.
  at::Tensor forward(const functional::Fork& input) {
    if (skips()) return forward_skipping(input);
    return norms_.back()->forward_relu(inner(input.first), shortcut(input.second));
  }
  functional::Fork fork(const functional::Fork& input) {
    if (skips()) {
      const auto y = forward_skipping(input);
      return {y, y};
    }
    return norms_.back()->fork_relu(inner(input.first), shortcut(input.second));
  }

  /// Like forward(), but saves only the input (activation checkpointing).
  at::Tensor recomputed(const functional::Fork& input) {
    const auto part = [this](const Tensors& in) { return Tensors{forward({in[0], in[1]})}; };
    return functional::recompute(part, {input.first, input.second}, parameters())[0];
  }
  functional::Fork recomputed_fork(const functional::Fork& input) {
    const auto part = [this](const Tensors& in) {
      const auto out = fork({in[0], in[1]});
      return Tensors{out.first, out.second};
    };
    const auto out = functional::recompute(part, {input.first, input.second}, parameters());
    return {out[0], out[1]};
  }

 private:
  using Tensors = std::vector<at::Tensor>;
  struct Downsample : torch::nn::Module {};

  bool skips() const { return is_training() && skip_rate_ > 0; }

  at::Tensor forward_skipping(const functional::Fork& input) {
    const auto x = norms_.back()->forward(inner(input.first));
    return functional::drop_samples(x, skip_rate_, /*training=*/true)
        .add(shortcut(input.second))
        .relu();
  }

  void add(Initializer& init, const Style& style, Conv2d::Options options, double norm_weight) {
    options.padding = options.window / 2;
    options.init = style.conv_init;
    convs_.push_back(std::make_shared<Conv2d>(init, options));
    norms_.push_back(std::make_shared<BatchNorm2d>(
        init, BatchNorm2d::Options{options.out, style.momentum, norm_weight}));
    const auto number = std::to_string(convs_.size());
    register_module("conv" + number, convs_.back());
    register_module("bn" + number, norms_.back());
  }

  void add_projection(Initializer& init, const Style& style, Conv2d::Options options) {
    options.init = style.conv_init;
    const auto downsample = register_module("downsample", std::make_shared<Downsample>());
    projection_ = downsample->register_module("0", std::make_shared<Conv2d>(init, options));
    projection_norm_ = downsample->register_module(
        "1",
        std::make_shared<BatchNorm2d>(init, BatchNorm2d::Options{options.out, style.momentum}));
  }

  // Runs all layers up to the last batch norm.
  at::Tensor inner(const at::Tensor& input) {
    auto x = convs_[0]->forward(input);
    for (size_t i = 1; i < convs_.size(); ++i) {
      x = convs_[i]->forward(norms_[i - 1]->forward_relu(x));
    }
    return x;
  }

  // Undefined if there is no shortcut.
  at::Tensor shortcut(const at::Tensor& input) {
    if (shortcut_ == Shortcut::kNone) return {};
    if (projection_) return projection_norm_->forward(projection_->forward(input));
    auto x = input;
    if (stride_ != 1) x = x.slice(2, 0, {}, stride_).slice(3, 0, {}, stride_);
    if (missing_channels_ > 0) x = at::constant_pad_nd(x, {0, 0, 0, 0, 0, missing_channels_});
    return x;
  }

  int64_t stride_;
  int64_t missing_channels_ = 0;
  Shortcut shortcut_;
  double skip_rate_;  // Fraction of samples that skip the block in training.
  std::vector<std::shared_ptr<Conv2d>> convs_;
  std::vector<std::shared_ptr<BatchNorm2d>> norms_;
  std::shared_ptr<Conv2d> projection_;
  std::shared_ptr<BatchNorm2d> projection_norm_;
};

class Resnet final : public Network {
 public:
  Resnet(const ResnetConfig& config, const Task& task, InitialWeights weights) {
    const auto shape = shape_of(config.depth);
    Initializer init(weights);
    const auto count = std::accumulate(shape.blocks.begin(), shape.blocks.end(), int64_t{0});
    const Style style{shortcut_named(config.shortcut), config.batch_norm_momentum,
                      config.zero_init_residual ? 0.0 : 1.0, parse_init(config.conv_init),
                      functional::stochastic_depth_rates(config.stochastic_depth, count)};
    const bool small_images = std::min(task.height, task.width) < 64;
    pools_ = config.stem == "imagenet" || (config.stem == "auto" && !small_images);

    int64_t channels = scaled(shape.cifar_form ? 16 : 64, config.width);
    add_stem(init, style, task.channels, channels, config.stem == "strided" ? 2 : 1);
    for (size_t stage = 0; stage < shape.blocks.size(); ++stage) {
      const int64_t base = (shape.cifar_form ? 16 : 64) << stage;
      channels = add_stage(init, style, stage, channels, scaled(base, config.width),
                           shape.blocks[stage], shape.bottleneck);
    }
    fc_ = register_module(
        "fc", std::make_shared<Linear>(init, Linear::Options{.in = channels,
                                                             .out = task.classes,
                                                             .init = parse_init(config.linear_init),
                                                             .is_head = true}));
  }

  int64_t blocks() const override { return static_cast<int64_t>(blocks_.size()); }
  std::vector<std::shared_ptr<torch::nn::Module>> block_modules() const override {
    return {blocks_.begin(), blocks_.end()};
  }

  bool takes_any_size() const override { return true; }
  std::vector<std::string> cut_modules() const override {
    std::vector<std::string> modules;
    for (size_t stage = 0; stage < sizes_.size(); ++stage) {
      const std::string list = "layer" + std::to_string(stage + 1) + ".";
      for (std::string& path : numbered(list, sizes_[stage])) {
        modules.push_back(std::move(path));
      }
    }
    return modules;
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward_blocks(input, 0, blocks()).x;
  }

  Output forward_blocks(const at::Tensor& input, int64_t begin, int64_t end) override {
    auto fork = begin == 0 ? stem(input) : functional::Fork{input, input};
    const auto last = static_cast<size_t>(end) - 1;
    for (auto i = static_cast<size_t>(begin); i < last; ++i) {
      fork = run_block(i, fork, [&](const functional::Fork& in) {
        return recomputes(i) ? blocks_[i]->recomputed_fork(in) : blocks_[i]->fork(in);
      });
    }
    const auto x = run_block(last, fork, [&](const functional::Fork& in) {
      return recomputes(last) ? blocks_[last]->recomputed(in) : blocks_[last]->forward(in);
    });
    if (end < blocks()) return {x};
    return {fc_->forward(functional::global_avg_pool(x))};
  }

 private:
  struct Stage : torch::nn::Module {};

  static Shortcut shortcut_named(const std::string& name) {
    if (name == "none") return Shortcut::kNone;
    return name == "pad" ? Shortcut::kPad : Shortcut::kProjection;
  }

  functional::Fork stem(const at::Tensor& input) {
    const auto x = conv_->forward(input);
    if (!pools_) return norm_->fork_relu(x);
    const auto pooled = at::max_pool2d(norm_->forward_relu(x), 3, 2, 1);
    return {pooled, pooled};
  }

  void add_stem(Initializer& init, const Style& style, int64_t in, int64_t out, int64_t stride) {
    Conv2d::Options options{.in = in, .out = out, .window = 3, .stride = stride, .padding = 1};
    if (pools_) options = {.in = in, .out = out, .window = 7, .stride = 2, .padding = 3};
    options.init = style.conv_init;
    conv_ = register_module("conv1", std::make_shared<Conv2d>(init, options));
    norm_ = register_module(
        "bn1", std::make_shared<BatchNorm2d>(init, BatchNorm2d::Options{out, style.momentum}));
  }

  // Returns the output channels of the stage.
  int64_t add_stage(Initializer& init, const Style& style, size_t stage, int64_t in,
                    int64_t channels, int64_t blocks, bool bottleneck) {
    const auto list =
        register_module("layer" + std::to_string(stage + 1), std::make_shared<Stage>());
    sizes_.push_back(static_cast<size_t>(blocks));
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t stride = i == 0 && stage > 0 ? 2 : 1;
      blocks_.push_back(std::make_shared<Block>(init, style, in, channels, stride, bottleneck,
                                                style.skip_rates[blocks_.size()]));
      list->register_module(std::to_string(i), blocks_.back());
      in = bottleneck ? 4 * channels : channels;
    }
    return in;
  }

  bool pools_ = false;  // Whether the stem is ImageNet's.
  std::shared_ptr<Conv2d> conv_;
  std::shared_ptr<BatchNorm2d> norm_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::vector<size_t> sizes_;  // The number of blocks of each stage.
  std::shared_ptr<Linear> fc_;
};

}  // namespace

void visit(config::Visitor& visitor, ResnetConfig& config) {
  visitor.field({.name = "depth",
                 .help = "layers: 18, 34, 50 (ImageNet form) or 6n+2 such as 20 (CIFAR form)",
                 .min = 8},
                config.depth);
  visitor.field({.name = "stem",
                 .help = "stem: 3x3, 3x3 with stride 2, or 7x7 with pooling; auto: by image size",
                 .choices = {"auto", "cifar", "strided", "imagenet"}},
                config.stem);
  visitor.field(
      {.name = "width", .help = "width multiplier of all channels", .min = 0, .above_min = true},
      config.width);
  visitor.field({.name = "shortcut",
                 .help = "shortcut of blocks that change the shape; none: no shortcuts at all",
                 .choices = {"projection", "pad", "none"}},
                config.shortcut);
  visitor.field(
      {.name = "zero_init_residual",
       .help = "initialize the last norm of each block with 0, so that it starts as the identity"},
      config.zero_init_residual);
  visitor.field(kBatchNormMomentum, config.batch_norm_momentum);
  visitor.field(kStochasticDepth, config.stochastic_depth);
  visitor.field(conv_init_field(), config.conv_init);
  visitor.field({.name = "linear_init",
                 .help = "weight initialization of the last layer",
                 .choices = init_names()},
                config.linear_init);
}

std::unique_ptr<Model> make_resnet(const ResnetConfig& config, const Task& task,
                                   InitialWeights weights) {
  require_images(task, "resnet");
  require(config.width > 0,
          "resnet: width must be positive, but is " + std::to_string(config.width));
  require(config.stochastic_depth == 0 || config.shortcut != "none",
          "resnet: with stochastic_depth samples skip blocks by their shortcuts, but shortcut is "
          "none; set stochastic_depth to 0");
  return make_model(std::make_shared<Resnet>(config, task, weights));
}

}  // namespace gallop::model
