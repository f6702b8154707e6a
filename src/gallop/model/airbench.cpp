#include "gallop/model/airbench.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/im2col.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/where.h>

#include "gallop/model/fields.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/conv2d.h"
#include "gallop/model/layers.h"
#include "gallop/model/network.h"

namespace gallop::model {

namespace {

using kernel::Activation;

// Sufficient for estimating the covariance of the few directions.
constexpr int64_t kWhitenedPatches = 1 << 20;

Activation activation_named(const std::string& name) {
  if (name == "silu") return Activation::kSilu;
  return name == "relu" ? Activation::kRelu : Activation::kGelu;
}

// x is [N, C, H, W] in either memory format; the kernels take channels last.
at::Tensor activate(Activation kind, const at::Tensor& x) {
  const at::Tensor last = x.permute({0, 2, 3, 1});
  if (!last.is_contiguous()) return functional::activation(kind, x);
  return functional::activation(kind, last).permute({0, 3, 1, 2});
}

// A convolution with decorrelated outputs of variance 1, each also with opposite sign.
class Whitening final : public torch::nn::Module {
 public:
  Whitening(Initializer& init, int64_t channels, int64_t patch, double eps)
      : patch_(patch), eps_(eps) {
    const int64_t directions = channels * patch * patch;
    weight_ = register_buffer("weight",
                              init.weight({2 * directions, channels, patch, patch}, InitScheme{}));
    bias_ = register_parameter("bias", init.constant({2 * directions}, 0));
  }

  int64_t outputs() const { return weight_.size(0); }

  at::Tensor forward(const at::Tensor& x) const {
    return functional::conv2d(x, weight_, bias_, /*stride=*/1, /*padding=*/0);
  }

  void initialize_from(const at::Tensor& images) {
    const at::NoGradGuard no_grad;
    const at::Tensor columns_NDP = at::im2col(images.to(at::kFloat).contiguous(), {patch_, patch_},
                                              /*dilation=*/{1, 1}, /*padding=*/{0, 0},
                                              /*stride=*/{1, 1});
    const at::Tensor patches_DM = columns_NDP.transpose(0, 1).flatten(1).to(at::kDouble);
    const at::Tensor covariance_DD =
        patches_DM.mm(patches_DM.t()) / static_cast<double>(patches_DM.size(1));
    auto [variances, directions_DD] = at::linalg_eigh(covariance_DD);
    // Largest first. Signs are arbitrary: make the largest component of each direction positive.
    at::Tensor rows_DD = directions_DD.t().flip(0);
    const at::Tensor largest = rows_DD.gather(1, rows_DD.abs().argmax(1, /*keepdim=*/true));
    rows_DD = at::where(largest.lt(0), -rows_DD, rows_DD);
    const at::Tensor scaled = rows_DD / (variances.flip(0).unsqueeze(1) + eps_).sqrt();
    weight_.copy_(at::cat({scaled, -scaled}).view(weight_.sizes()));
  }

 private:
  int64_t patch_;
  double eps_;
  at::Tensor weight_, bias_;
};

// conv, pool, norm, activation, conv, norm, activation
class Stage final : public torch::nn::Module {
 public:
  Stage(Initializer& init, int64_t in, int64_t out, const AirbenchConfig& config)
      : activation_(activation_named(config.activation)) {
    const InitScheme scheme = parse_init(config.conv_init);
    const BatchNorm2d::Options norm{
        .channels = out, .momentum = config.batch_norm_momentum, .trains_weight = false};
    const auto conv = [&](int64_t channels) {
      return std::make_shared<Conv2d>(
          init,
          Conv2d::Options{.in = channels, .out = out, .window = 3, .padding = 1, .init = scheme});
    };
    first_ = register_module("conv1", conv(in));
    first_norm_ = register_module("bn1", std::make_shared<BatchNorm2d>(init, norm));
    second_ = register_module("conv2", conv(out));
    second_norm_ = register_module("bn2", std::make_shared<BatchNorm2d>(init, norm));
  }

  at::Tensor forward(const at::Tensor& input) {
    auto x = at::max_pool2d(first_->forward(input), {2, 2});
    x = norm_and_activation(*first_norm_, x);
    return norm_and_activation(*second_norm_, second_->forward(x));
  }

 private:
  at::Tensor norm_and_activation(BatchNorm2d& norm, const at::Tensor& x) const {
    if (activation_ == Activation::kRelu) return norm.forward_relu(x);
    return activate(activation_, norm.forward(x));
  }

  Activation activation_;
  std::shared_ptr<Conv2d> first_, second_;
  std::shared_ptr<BatchNorm2d> first_norm_, second_norm_;
};

// Each stage halves the images, of which the first layer leaves out the edges.
void require_large_enough(int64_t height, int64_t width, int64_t patch, size_t stages) {
  require((std::min(height, width) - patch + 1) >> stages >= 1,
          "airbench: images of " + std::to_string(height) + "x" + std::to_string(width) +
              " are too small for " + std::to_string(stages) +
              " stages, each of which halves them");
}

class Airbench final : public Network {
 public:
  Airbench(const AirbenchConfig& config, const Task& task, InitialWeights weights)
      : activation_(activation_named(config.activation)),
        logit_scale_(config.logit_scale),
        images_(std::max<int64_t>(1, kWhitenedPatches / (task.height * task.width))),
        patch_(config.patch) {
    Initializer init(weights);
    whitening_ = register_module(
        "whiten",
        std::make_shared<Whitening>(init, task.channels, config.patch, config.whitening_eps));
    int64_t channels = whitening_->outputs();
    for (size_t i = 0; i < config.widths.size(); ++i) {
      stages_.push_back(
          register_module("layer" + std::to_string(i + 1),
                          std::make_shared<Stage>(init, channels, config.widths[i], config)));
      channels = config.widths[i];
    }
    head_ = register_module(
        "head",
        std::make_shared<Linear>(
            init,
            Linear::Options{.in = channels, .out = task.classes, .bias = false, .is_head = true}));
  }

  int64_t images_to_initialize() const override { return images_; }
  void initialize_from(const at::Tensor& images) override { whitening_->initialize_from(images); }

  bool takes_any_size() const override { return true; }
  at::Tensor forward(const at::Tensor& input) override {
    require_large_enough(input.size(2), input.size(3), patch_, stages_.size());
    auto x = activate(activation_, whitening_->forward(input));
    for (const auto& stage : stages_) x = stage->forward(x);
    x = at::max_pool2d(x, {x.size(2), x.size(3)});
    return head_->forward(x.flatten(1)) * logit_scale_;
  }

 private:
  Activation activation_;
  double logit_scale_;
  int64_t images_, patch_;
  std::shared_ptr<Whitening> whitening_;
  std::vector<std::shared_ptr<Stage>> stages_;
  std::shared_ptr<Linear> head_;
};

}  // namespace

void visit(config::Visitor& visitor, AirbenchConfig& config) {
  visitor.field({.name = "widths", .help = "channels of each stage", .min = 1, .max = 1 << 16},
                config.widths);
  visitor.field({.name = "patch",
                 .help = "side length in pixels of the whitened patches",
                 .min = 1,
                 .max = 16},
                config.patch);
  visitor.field({.name = "whitening_eps",
                 .help = "epsilon added to each eigenvalue in the whitening",
                 .min = 0,
                 .above_min = true},
                config.whitening_eps);
  visitor.field({.name = "activation",
                 .help = "activation function after each batch norm",
                 .choices = {"gelu", "silu", "relu"}},
                config.activation);
  visitor.field(kBatchNormMomentum, config.batch_norm_momentum);
  visitor.field({.name = "logit_scale", .help = "scale of the logits", .min = 0, .above_min = true},
                config.logit_scale);
  visitor.field(conv_init_field(), config.conv_init);
}

std::unique_ptr<Model> make_airbench(const AirbenchConfig& config, const Task& task,
                                     InitialWeights weights) {
  require_images(task, "airbench");
  require(!config.widths.empty(), "airbench: widths must name at least one stage");
  require_large_enough(task.height, task.width, config.patch, config.widths.size());
  return make_model(std::make_shared<Airbench>(config, task, weights));
}

}  // namespace gallop::model
