#include "gallop/train/losses/focal.h"

#include <functional>
#include <utility>

#include <ATen/core/Reduction.h>
#include <ATen/ops/binary_cross_entropy_with_logits.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/neg.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

// Below it, powers with an exponent under 1 would have an infinite gradient.
constexpr double kLeast = 1e-30;

class Focal final : public Loss {
 public:
  Focal(FocalConfig config, bool has_labels, const std::vector<double>& weights, c10::Device device)
      : config_(std::move(config)),
        has_labels_(has_labels),
        weights_(option_tensor(weights, device)) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logits = widened(output.logits());
    const at::Tensor& target = field_of(batch, "target");
    if (target.is_floating_point()) {
      const at::Tensor y = target.to(logits.scalar_type());
      return weighted_total(of_sigmoid(logits.reshape(target.sizes()), y),
                            weights_by_target(batch, target));
    }
    return weighted_total(of_softmax(class_rows(logits), label_rows(target, data::kIgnoredTarget)),
                          weights_by_row(batch, target));
  }

  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = field_of(batch, "target");
    const bool is_float = target.is_floating_point();
    const at::Tensor weights = weights_by_target(batch, target);
    if (!weights.defined()) {
      return is_float ? count_tensor(target.numel(), target)
                      : count_labels(target, data::kIgnoredTarget);
    }
    const at::Tensor wide = weights.to(at::kDouble);
    return is_float ? wide.sum() : wide.mul(target.ne(data::kIgnoredTarget)).sum();
  }

  LossTraits traits() const override {
    return {.counts_by_size = true,
            .can_ignore = has_labels_,
            .predicts_classes = has_labels_,
            .is_of_units = false,
            .takes_weights = true};
  }
  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    if (!has_labels_) require_range("focal", some_targets(), 0, 1);
  }
  NamedTensors tensors() const override {
    if (!weights_.defined()) return {};
    return {{"loss.class_weights", weights_}};
  }

 private:
  // For an ignored row -log(p) is 0, and so is the loss.
  at::Tensor of_softmax(const at::Tensor& logits, const at::Tensor& labels) const {
    const at::Tensor minus_log_p = at::nll_loss(at::log_softmax(logits, 1), labels, {},
                                                at::Reduction::None, data::kIgnoredTarget);
    const at::Tensor rest = minus_log_p.neg().expm1().neg().clamp_min(kLeast);
    at::Tensor values = rest.pow(config_.gamma).mul(minus_log_p);
    if (!weights_.defined()) return values;
    const at::Tensor weights = weights_.index_select(0, labels.clamp_min(0));
    return values.mul(weights.to(values.scalar_type()));
  }

  at::Tensor of_sigmoid(const at::Tensor& logits, const at::Tensor& y) const {
    const at::Tensor p = logits.sigmoid(), other = y.neg().add(1);
    // 1 - p of the target.
    const at::Tensor rest = p.mul(other).add(p.neg().add(1).mul(y)).clamp_min(kLeast);
    at::Tensor values = at::binary_cross_entropy_with_logits(logits, y, {}, {}, at::Reduction::None)
                            .mul(rest.pow(config_.gamma));
    if (!config_.alpha) return values;
    return values.mul(y.mul(*config_.alpha).add(other, 1 - *config_.alpha));
  }

  FocalConfig config_;
  bool has_labels_;
  at::Tensor weights_;  // fp64 [C], or undefined.
};

}  // namespace

void visit(config::Visitor& v, FocalConfig& c) {
  v.field({.name = "gamma",
           .help = "focusing parameter, which down-weights easy targets; 0 is cross-entropy",
           .min = 0},
          c.gamma);
  v.field({.name = "alpha",
           .help = "for targets 0 to 1: weight of positive targets; negative ones have 1 - alpha",
           .min = 0,
           .max = 1},
          c.alpha);
  visit(v, c.classes);
}

std::unique_ptr<Loss> make_focal(const FocalConfig& config, const LossContext& context) {
  const bool has_labels = !c10::isFloatingType(context.target_type);
  has_labels ? require_class_labels("focal", context) : require_values("focal", context);
  if (!has_labels && !config.classes.class_weights.empty()) {
    throw UsageError(
        "train.loss.class_weights of focal is for class labels, and the targets are numbers from 0 "
        "to 1; use alpha, the weight of positive ones");
  }
  return std::make_unique<Focal>(config, has_labels,
                                 class_weights("focal", config.classes, context), context.device);
}

}  // namespace gallop::train
