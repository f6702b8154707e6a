#include "gallop/model/layer/pooling.h"

#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/max_pool2d.h>

#include "gallop/model/functional/global_avg_pool.h"

namespace gallop::model {

namespace {

class Pool final : public Layer {
 public:
  Pool(const PoolConfig& config, bool takes_maximum, bool is_image)
      : config_(config), takes_maximum_(takes_maximum), is_image_(is_image) {}

  at::Tensor forward(const at::Tensor& x) override {
    if (is_image_) return pool(x);
    // A sequence is an image [C, T, 1].
    return pool(x.transpose(1, 2).unsqueeze(3)).squeeze(3).transpose(1, 2);
  }

 private:
  at::Tensor pool(const at::Tensor& x) const {
    const auto& [kernel, stride, padding] = config_;
    const int64_t width = is_image_ ? kernel : 1, at_sides = is_image_ ? padding : 0;
    if (takes_maximum_) {
      return at::max_pool2d(x, {kernel, width}, {stride, stride}, {padding, at_sides});
    }
    return at::avg_pool2d(x, {kernel, width}, {stride, stride}, {padding, at_sides});
  }

  PoolConfig config_;
  bool takes_maximum_, is_image_;
};

class GlobalAvgPool final : public Layer {
 public:
  explicit GlobalAvgPool(std::shared_ptr<const SequenceMask> mask) : mask_(std::move(mask)) {}

  at::Tensor forward(const at::Tensor& x) override {
    if (x.dim() == 3) return mask_ ? mean_of_tokens(x) : x.mean(1);
    return functional::global_avg_pool(x);
  }

 private:
  at::Tensor mean_of_tokens(const at::Tensor& x_NTC) const {
    const at::Tensor is_token_NT1 = mask_->is_token_NT.unsqueeze(2).to(x_NTC.scalar_type());
    const at::Tensor count_N1 = mask_->is_token_NT.sum(1, /*keepdim=*/true).clamp_min(1);
    return x_NTC.mul(is_token_NT1).sum(1).div(count_N1);
  }

  std::shared_ptr<const SequenceMask> mask_;  // Null where nothing is padded.
};

std::unique_ptr<Layer> make_pool(PoolConfig config, LayerContext& context, bool takes_maximum) {
  context.require_image_or_sequence();
  context.require_unpadded("use global-avg-pool, the mean of the tokens");
  const bool is_image = context.shape.kind == Shape::Kind::kImage;
  context.require(!context.causal || is_image || config.kernel == 1,
                  "pooling lets a position see the tokens that it is to predict");
  if (config.stride == 0) config.stride = config.kernel;
  context.require(2 * config.padding <= config.kernel,
                  "padding must be at most half of kernel, " + std::to_string(config.kernel));
  Shape shape = context.shape;
  for (int64_t* length : shape.lengths()) {
    const int64_t padded = *length + 2 * config.padding;
    context.require(padded >= config.kernel, "its kernel of " + std::to_string(config.kernel) +
                                                 " is larger than its input, " +
                                                 context.shape.describe());
    *length = (padded - config.kernel) / config.stride + 1;
  }
  context.shape = shape;
  return std::make_unique<Pool>(config, takes_maximum, is_image);
}

}  // namespace

void visit(config::Visitor& visitor, PoolConfig& config) {
  visitor.field({.name = "kernel", .help = "kernel size", .min = 1}, config.kernel);
  visitor.field({.name = "stride", .help = "stride of the kernel; 0: its size", .min = 0},
                config.stride);
  visitor.field({.name = "padding", .help = "padding on each side", .min = 0}, config.padding);
}

std::unique_ptr<Layer> make_max_pool(const PoolConfig& config, LayerContext& context) {
  return make_pool(config, context, /*takes_maximum=*/true);
}

std::unique_ptr<Layer> make_avg_pool(const PoolConfig& config, LayerContext& context) {
  return make_pool(config, context, /*takes_maximum=*/false);
}

std::unique_ptr<Layer> make_global_avg_pool(const NoOptions& /*config*/, LayerContext& context) {
  context.require_image_or_sequence();
  context.shape = {.kind = Shape::Kind::kVector, .sizes = {context.shape.channels()}};
  return std::make_unique<GlobalAvgPool>(context.mask);
}

}  // namespace gallop::model
