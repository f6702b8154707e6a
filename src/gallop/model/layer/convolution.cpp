#include "gallop/model/layer/convolution.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose1d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/upsample_bilinear2d.h>
#include <ATen/ops/upsample_nearest2d.h>

#include "gallop/config/node.h"
#include "gallop/config/scalar.h"
#include "gallop/model/functional/conv2d.h"

namespace gallop::model {

namespace {

struct Weights : torch::nn::Module {};

std::optional<int64_t> number_of(const std::string& text) {
  return config::as_integer(config::Node::make_scalar(text));
}

// Weight [first, second, kernel] or [first, second, kernel, kernel], as in PyTorch.
class Convolution : public Layer {
 public:
  Convolution(LayerContext& context, int64_t first, int64_t second, int64_t kernel, int64_t outputs,
              bool bias)
      : is_image_(context.shape.kind == Shape::Kind::kImage) {
    std::vector<int64_t> sizes = {first, second, kernel};
    if (is_image_) sizes.push_back(kernel);
    weight_ =
        module_->register_parameter("weight", context.initializer.weight(sizes, context.conv_init));
    if (!bias) return;
    const int64_t fan_in = second * kernel * (is_image_ ? kernel : 1);
    bias_ = module_->register_parameter(
        "bias", context.initializer.bias(outputs, fan_in, context.conv_init));
  }

  std::shared_ptr<torch::nn::Module> module() const override { return module_; }

 protected:
  std::shared_ptr<Weights> module_ = std::make_shared<Weights>();
  bool is_image_;
  at::Tensor weight_, bias_;
};

class Conv final : public Convolution {
 public:
  Conv(const ConvConfig& config, LayerContext& context, int64_t padding, bool is_causal)
      : Convolution(context, config.channels, context.shape.channels() / config.groups,
                    config.kernel, config.channels, config.bias),
        config_(config),
        padding_(padding),
        is_causal_(is_causal),
        // Padding is at the end: no token reads it with a causal kernel.
        mask_(is_image_ || is_causal ? nullptr : context.mask) {}

  at::Tensor forward(const at::Tensor& x) override {
    const auto& [channels, kernel, stride, named, dilation, groups, bias] = config_;
    if (is_image_ && groups == 1 && dilation == 1) {
      return functional::conv2d(x, weight_, bias_, stride, padding_);
    }
    if (is_image_) {
      return at::conv2d(x, weight_, bias_, {stride, stride}, {padding_, padding_},
                        {dilation, dilation}, groups);
    }
    // Padding is zeroed, like the positions beyond the end of the longest text.
    at::Tensor x_NCT = (mask_ ? x.mul(mask_->is_token_NT.unsqueeze(2)) : x).transpose(1, 2);
    if (is_causal_) x_NCT = at::constant_pad_nd(x_NCT, {padding_, 0});
    return at::conv1d(x_NCT, weight_, bias_, stride, is_causal_ ? 0 : padding_, dilation, groups)
        .transpose(1, 2);
  }

 private:
  ConvConfig config_;
  int64_t padding_;
  bool is_causal_;
  std::shared_ptr<const SequenceMask> mask_;  // Null where no padding is seen.
};

class ConvTranspose final : public Convolution {
 public:
  ConvTranspose(const ConvTransposeConfig& config, LayerContext& context)
      : Convolution(context, context.shape.channels(), config.channels / config.groups,
                    config.kernel, config.channels, config.bias),
        config_(config) {}

  at::Tensor forward(const at::Tensor& x) override {
    const auto& [channels, kernel, stride, padding, output_padding, groups, bias] = config_;
    if (is_image_) {
      return at::conv_transpose2d(x, weight_, bias_, {stride, stride}, {padding, padding},
                                  {output_padding, output_padding}, groups);
    }
    return at::conv_transpose1d(x.transpose(1, 2), weight_, bias_, stride, padding, output_padding,
                                groups)
        .transpose(1, 2);
  }

 private:
  ConvTransposeConfig config_;
};

class Upsample final : public Layer {
 public:
  explicit Upsample(const UpsampleConfig& config) : config_(config) {}

  at::Tensor forward(const at::Tensor& x) override {
    const std::vector<int64_t> sizes = {x.size(2) * config_.scale, x.size(3) * config_.scale};
    if (config_.mode == "nearest") return at::upsample_nearest2d(x, sizes);
    return at::upsample_bilinear2d(x, sizes, /*align_corners=*/false);
  }

 private:
  UpsampleConfig config_;
};

void require_groups(const LayerContext& context, int64_t channels, int64_t groups) {
  context.require(channels > 0, "needs channels, the number of its outputs");
  context.require(context.shape.channels() % groups == 0 && channels % groups == 0,
                  "groups of " + std::to_string(groups) + " must divide the " +
                      std::to_string(context.shape.channels()) + " channels of its input and the " +
                      std::to_string(channels) + " of its output");
}

std::string padding_mistake(const std::string& text) {
  if (text == "auto" || text == "same" || text == "causal") return {};
  const auto number = number_of(text);
  return number && *number >= 0 ? "" : "must be auto, same, causal or a number >= 0";
}

// "auto" keeps the length if the stride is 1, and never lets a position read a later token.
std::string resolved(const ConvConfig& config, const LayerContext& context) {
  const bool is_text = context.causal && context.shape.kind == Shape::Kind::kSequence;
  if (config.padding == "auto") return is_text ? "causal" : "same";
  context.require(!is_text || config.padding == "causal" || config.kernel == 1,
                  "padding '" + config.padding +
                      "' lets a position see the tokens that it is to predict; set it to causal");
  context.require(
      config.padding != "causal" || context.shape.kind == Shape::Kind::kSequence,
      "padding 'causal' is for sequences, but its input is " + context.shape.describe());
  return config.padding;
}

}  // namespace

void visit(config::Visitor& visitor, ConvConfig& config) {
  visitor.field({.name = "channels",
                 .help = "output channels; 0: the number of classes of the data",
                 .min = 0},
                config.channels);
  visitor.field({.name = "kernel", .help = "kernel size", .min = 1}, config.kernel);
  visitor.field({.name = "stride", .help = "stride of the kernel", .min = 1}, config.stride);
  visitor.field(
      {.name = "padding",
       .help = "zeros around the input: a number; same: half of the kernel; causal: before "
               "a sequence; auto: causal for text, else same",
       .check = padding_mistake},
      config.padding);
  visitor.field({.name = "dilation", .help = "spacing of the kernel's elements", .min = 1},
                config.dilation);
  visitor.field({.name = "groups", .help = "groups of channels; all of them: depthwise", .min = 1},
                config.groups);
  visitor.field({.name = "bias", .help = "add a learned bias"}, config.bias);
}

void visit(config::Visitor& visitor, ConvTransposeConfig& config) {
  visitor.field({.name = "channels", .help = "output channels", .min = 1}, config.channels);
  visitor.field({.name = "kernel", .help = "kernel size", .min = 1}, config.kernel);
  visitor.field({.name = "stride", .help = "stride: scale factor of the output size", .min = 1},
                config.stride);
  visitor.field({.name = "padding", .help = "elements cut from each side of the output", .min = 0},
                config.padding);
  visitor.field(
      {.name = "output_padding", .help = "elements added to one side of the output", .min = 0},
      config.output_padding);
  visitor.field({.name = "groups", .help = "groups of channels", .min = 1}, config.groups);
  visitor.field({.name = "bias", .help = "add a learned bias"}, config.bias);
}

void visit(config::Visitor& visitor, UpsampleConfig& config) {
  visitor.field({.name = "scale", .help = "factor of height and width", .min = 1}, config.scale);
  visitor.field({.name = "mode", .help = "interpolation", .choices = {"nearest", "bilinear"}},
                config.mode);
}

std::unique_ptr<Layer> make_conv(const ConvConfig& config, LayerContext& context) {
  context.require_image_or_sequence();
  ConvConfig chosen = config;
  if (chosen.channels == 0) chosen.channels = context.classes;
  context.require(chosen.channels > 0,
                  "needs channels, as the data leave the size of the embeddings open");
  require_groups(context, chosen.channels, chosen.groups);
  const std::string padding = resolved(chosen, context);
  const int64_t reach = chosen.dilation * (chosen.kernel - 1);
  const bool is_causal = padding == "causal";
  context.require(padding != "same" || reach % 2 == 0,
                  "padding 'same' needs an odd kernel, but kernel is " +
                      std::to_string(chosen.kernel) + "; give the padding as a number");
  const int64_t each = is_causal ? reach : padding == "same" ? reach / 2 : *number_of(padding);
  auto layer = std::make_unique<Conv>(chosen, context, each, is_causal);
  Shape shape = context.shape.with_channels(chosen.channels);
  for (int64_t* length : shape.lengths()) {
    const int64_t padded = *length + each * (is_causal ? 1 : 2);
    context.require(padded > reach, "its kernel of " + std::to_string(reach + 1) +
                                        " is larger than its input, " + context.shape.describe());
    *length = (padded - reach - 1) / chosen.stride + 1;
  }
  if (shape.sizes.front() != context.shape.sizes.front()) {
    context.require_unpadded("keep the length, with stride 1 and padding same");
  }
  context.shape = shape;
  return layer;
}

std::unique_ptr<Layer> make_conv_transpose(const ConvTransposeConfig& config,
                                           LayerContext& context) {
  context.require_image_or_sequence();
  require_groups(context, config.channels, config.groups);
  context.require(config.output_padding < config.stride,
                  "output_padding must be less than stride, " + std::to_string(config.stride));
  context.require(!context.causal || context.shape.kind == Shape::Kind::kImage,
                  "a transposed convolution lets a position see the tokens that it is to predict");
  context.require_unpadded("use conv");
  auto layer = std::make_unique<ConvTranspose>(config, context);
  Shape shape = context.shape.with_channels(config.channels);
  for (int64_t* length : shape.lengths()) {
    *length =
        (*length - 1) * config.stride - 2 * config.padding + config.kernel + config.output_padding;
    context.require(*length > 0, "padding leaves nothing of its output");
  }
  context.shape = shape;
  return layer;
}

std::unique_ptr<Layer> make_upsample(const UpsampleConfig& config, LayerContext& context) {
  context.require_kind(Shape::Kind::kImage);
  context.shape.sizes[1] *= config.scale;
  context.shape.sizes[2] *= config.scale;
  return std::make_unique<Upsample>(config);
}

}  // namespace gallop::model
