#include "gallop/train/losses/elementwise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include <ATen/core/Reduction.h>
#include <ATen/ops/abs.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/huber_loss.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/poisson_nll_loss.h>
#include <ATen/ops/smooth_l1_loss.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class Elementwise : public Loss {
 public:
  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const final {
    const at::Tensor outputs = widened(output.logits());
    const at::Tensor target = field_of(batch, "target").to(outputs.scalar_type());
    const at::Tensor values = values_of(outputs, target);
    const at::Tensor weights = weights_by_target(batch, target);
    const bool has_several = weights.defined() && values.dim() > target.dim();
    return weighted_total(values, has_several ? weights.unsqueeze(-1) : weights);
  }

  at::Tensor count(const NamedTensors& batch) const final {
    const at::Tensor& target = field_of(batch, "target");
    const at::Tensor weights = weights_by_target(batch, target);
    if (!weights.defined()) return count_tensor(expected_count(target, target.size(0)), target);
    return weights.to(at::kDouble).sum().mul(outputs_per_target());
  }

  int64_t expected_count(const at::Tensor& target, int64_t rows) const final {
    return outputs_per_target() * Loss::expected_count(target, rows);
  }
  LossTraits traits() const final {
    return {.counts_by_size = true,
            .is_of_units = is_of_units(),
            .predicts_numbers = predicts_numbers(),
            .takes_weights = true};
  }

 private:
  // Losses of the target's sizes, or with an additional last dimension.
  virtual at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const = 0;
  virtual int64_t outputs_per_target() const { return 1; }
  virtual bool is_of_units() const { return true; }
  virtual bool predicts_numbers() const { return true; }
};

// A loss per pair of an output and its target.
template <typename Function>
class OfPairs final : public Elementwise {
 public:
  explicit OfPairs(Function function) : function_(std::move(function)) {}

 private:
  at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const override {
    return function_(outputs.reshape(target.sizes()), target);
  }
  Function function_;
};

template <typename Function>
std::unique_ptr<Loss> of_pairs(const char* name, const LossContext& context, Function function) {
  require_values(name, context);
  return std::make_unique<OfPairs<Function>>(std::move(function));
}

class BceWithLogits final : public Elementwise {
 public:
  BceWithLogits(const BceWithLogitsConfig& config, c10::Device device)
      : pos_weight_(option_tensor(config.pos_weight, device)) {}
  NamedTensors tensors() const override {
    if (!pos_weight_.defined()) return {};
    return {{"loss.pos_weight", pos_weight_}};
  }
  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    require_range("bce-with-logits", some_targets(), 0, 1);
  }

 private:
  at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const override {
    return at::binary_cross_entropy_with_logits(
        outputs.reshape(target.sizes()), target, {},
        pos_weight_.defined() ? pos_weight_.to(outputs.scalar_type()) : at::Tensor(),
        at::Reduction::None);
  }
  bool is_of_units() const override { return false; }
  bool predicts_numbers() const override { return false; }
  at::Tensor pos_weight_;
};

class Quantile final : public Elementwise {
 public:
  Quantile(const QuantileConfig& config, c10::Device device)
      : config_(config), quantiles_(option_tensor(config.quantiles, device)) {}
  NamedTensors tensors() const override { return {{"loss.quantiles", quantiles_}}; }

  // "q0.9"
  std::vector<std::string> output_names() const override {
    std::vector<std::string> names;
    if (config_.quantiles.size() == 1) return names;
    for (const double quantile : config_.quantiles) names.push_back(fmt::format("q{}", quantile));
    return names;
  }
  // The quantile next to the median.
  at::Tensor predictions(const at::Tensor& outputs, const NamedTensors& batch) const override {
    const auto is_nearer = [](double a, double b) { return std::abs(a - 0.5) < std::abs(b - 0.5); };
    const auto& all = config_.quantiles;
    if (all.size() == 1) return outputs;
    return outputs_by_target(outputs, field_of(batch, "target"), outputs_per_target())
        .select(-1, std::min_element(all.begin(), all.end(), is_nearer) - all.begin());
  }

 private:
  at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const override {
    const at::Tensor away =
        target.unsqueeze(-1).sub(outputs_by_target(outputs, target, quantiles_.numel()));
    const at::Tensor quantiles = quantiles_.to(outputs.scalar_type());
    return at::maximum(away.mul(quantiles), away.mul(quantiles.sub(1)));
  }
  int64_t outputs_per_target() const override { return quantiles_.numel(); }
  QuantileConfig config_;
  at::Tensor quantiles_;  // [Q]
};

class GaussianNll final : public Elementwise {
 public:
  explicit GaussianNll(const GaussianNllConfig& config) : config_(config) {}
  std::vector<std::string> output_names() const override { return {"mean", "log_variance"}; }

 private:
  at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const override {
    const at::Tensor both = outputs_by_target(outputs, target, 2);
    const at::Tensor exponential = both.select(-1, 1).exp();
    // As in PyTorch, the limit has no effect on gradients.
    const at::Tensor variance =
        exponential.add(exponential.clamp_min(config_.eps).sub(exponential).detach());
    const at::Tensor away = both.select(-1, 0).sub(target);
    const at::Tensor values = variance.log().add(away.square().div(variance)).mul(0.5);
    return config_.full ? values.add(0.5 * std::log(2 * std::numbers::pi)) : values;
  }
  bool is_of_units() const override { return false; }
  GaussianNllConfig config_;
};

class PoissonNll final : public Elementwise {
 public:
  explicit PoissonNll(const PoissonNllConfig& config) : config_(config) {}
  std::vector<std::string> output_names() const override {
    if (!config_.log_input) return {};
    return {"log_rate"};
  }
  at::Tensor predictions(const at::Tensor& outputs, const NamedTensors& batch) const override {
    const at::Tensor rates = Loss::predictions(outputs, batch);
    return config_.log_input ? rates.exp() : rates;
  }
  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    require_range("poisson-nll", some_targets(), 0, std::numeric_limits<double>::infinity());
  }

 private:
  at::Tensor values_of(const at::Tensor& outputs, const at::Tensor& target) const override {
    return at::poisson_nll_loss(outputs.reshape(target.sizes()), target, config_.log_input,
                                config_.full, config_.eps, at::Reduction::None);
  }
  bool is_of_units() const override { return false; }
  PoissonNllConfig config_;
};

}  // namespace

void visit(config::Visitor&, MseConfig&) {}
void visit(config::Visitor&, L1Config&) {}

void visit(config::Visitor& v, HuberConfig& c) {
  v.field({.name = "delta",
           .help = "difference above which the loss is linear",
           .min = 0,
           .above_min = true},
          c.delta);
}

void visit(config::Visitor& v, SmoothL1Config& c) {
  v.field({.name = "beta", .help = "difference above which the loss is linear", .min = 0}, c.beta);
}

void visit(config::Visitor& v, QuantileConfig& c) {
  v.field({.name = "quantiles",
           .help = "quantiles that are predicted, one for each output of a target",
           .min = 0,
           .max = 1,
           .above_min = true,
           .below_max = true},
          c.quantiles);
}

void visit(config::Visitor& v, PoissonNllConfig& c) {
  v.field({.name = "log_input", .help = "outputs are logarithms of the rate"}, c.log_input);
  v.field({.name = "full", .help = "add Stirling's approximation of log(target!)"}, c.full);
  v.field({.name = "eps",
           .help = "epsilon added to the rate before its logarithm, without log_input",
           .min = 0,
           .above_min = true},
          c.eps);
}

void visit(config::Visitor& v, GaussianNllConfig& c) {
  v.field({.name = "full", .help = "add log(2 pi) / 2"}, c.full);
  v.field({.name = "eps", .help = "smallest variance", .min = 0, .above_min = true}, c.eps);
}

void visit(config::Visitor& v, BceWithLogitsConfig& c) {
  v.field({.name = "pos_weight",
           .help = "weight of positive targets, one number or one for each class; [] for 1",
           .min = 0},
          c.pos_weight);
}

std::unique_ptr<Loss> make_mse(const MseConfig&, const LossContext& context) {
  return of_pairs("mse", context, [](const at::Tensor& x, const at::Tensor& y) {
    return at::mse_loss(x, y, at::Reduction::None);
  });
}

std::unique_ptr<Loss> make_l1(const L1Config&, const LossContext& context) {
  return of_pairs("l1", context,
                  [](const at::Tensor& x, const at::Tensor& y) { return x.sub(y).abs(); });
}

std::unique_ptr<Loss> make_huber(const HuberConfig& config, const LossContext& context) {
  return of_pairs("huber", context,
                  [delta = config.delta](const at::Tensor& x, const at::Tensor& y) {
                    return at::huber_loss(x, y, at::Reduction::None, delta);
                  });
}

std::unique_ptr<Loss> make_smooth_l1(const SmoothL1Config& config, const LossContext& context) {
  // LibTorch's operator divides by beta.
  if (config.beta == 0) return make_l1({}, context);
  return of_pairs("smooth-l1", context,
                  [beta = config.beta](const at::Tensor& x, const at::Tensor& y) {
                    return at::smooth_l1_loss(x, y, at::Reduction::None, beta);
                  });
}

std::unique_ptr<Loss> make_quantile(const QuantileConfig& config, const LossContext& context) {
  if (config.quantiles.empty()) {
    throw UsageError("train.loss.quantiles is empty; give at least one, such as [0.5]");
  }
  LossContext of_each = context;
  if (config.quantiles.size() > 1) of_each.output_sizes = context.target_sizes;
  require_values("quantile", of_each);
  return std::make_unique<Quantile>(config, context.device);
}

std::unique_ptr<Loss> make_poisson_nll(const PoissonNllConfig& config, const LossContext& context) {
  require_values("poisson-nll", context);
  return std::make_unique<PoissonNll>(config);
}

std::unique_ptr<Loss> make_gaussian_nll(const GaussianNllConfig& config,
                                        const LossContext& context) {
  LossContext of_each = context;
  of_each.output_sizes = context.target_sizes;
  require_values("gaussian-nll", of_each);
  return std::make_unique<GaussianNll>(config);
}

std::unique_ptr<Loss> make_bce_with_logits(const BceWithLogitsConfig& config,
                                           const LossContext& context) {
  require_values("bce-with-logits", context);
  const auto given = static_cast<int64_t>(config.pos_weight.size());
  const int64_t last = context.target_sizes.empty() ? 1 : context.target_sizes.back();
  if (given > 1 && given != last) {
    throw UsageError(fmt::format(
        "train.loss.pos_weight has {} numbers, but the last dimension of the targets is {}; give "
        "one number, or one for each class",
        given, last));
  }
  return std::make_unique<BceWithLogits>(config, context.device);
}

}  // namespace gallop::train
