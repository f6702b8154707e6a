#include "gallop/train/losses/dice.h"

#include <functional>

#include <ATen/ops/arange.h>
#include <ATen/ops/div.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/square.h>
#include <ATen/ops/sum.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class Dice final : public Loss {
 public:
  Dice(const DiceConfig& config, bool has_labels) : config_(config), has_labels_(has_labels) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logits = positions(widened(output.logits()));
    const at::Tensor& target = field_of(batch, "target");
    const at::Tensor weights = weights_by_sample(batch);
    if (target.is_floating_point()) {
      return weighted_total(of(logits.sigmoid(), positions(target).to(logits.scalar_type())),
                            weights);
    }
    const at::Tensor labels = target.reshape({target.size(0), -1, 1});
    const at::Tensor counts = labels.ne(data::kIgnoredTarget).to(logits.scalar_type());
    const at::Tensor classes = at::arange(logits.size(2), labels.options());
    return weighted_total(
        of(at::softmax(logits, 2).mul(counts), labels.eq(classes).to(logits.scalar_type())),
        weights);
  }

  at::Tensor count(const NamedTensors& batch) const override { return count_samples(batch); }
  int64_t expected_count(const at::Tensor&, int64_t rows) const override { return rows; }
  LossTraits traits() const override {
    return {.counts_by_size = true, .is_of_units = false, .takes_weights = true};
  }
  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    if (!has_labels_) require_range("dice", some_targets(), 0, 1);
  }

 private:
  // [N, P, C]
  static at::Tensor positions(const at::Tensor& tensor) {
    const at::Tensor last = classes_last(tensor);
    return last.reshape({last.size(0), -1, last.size(-1)});
  }

  // A loss per sample, [N].
  at::Tensor of(const at::Tensor& p, const at::Tensor& t) const {
    const auto size = [&](const at::Tensor& of) {
      return (config_.squared ? of.square() : of).sum(1);
    };
    const at::Tensor overlap = p.mul(t).sum(1).mul(2).add(config_.smooth);
    const at::Tensor dice = overlap.div(size(p).add(size(t)).add(config_.smooth));
    const at::Tensor counted = config_.include_background ? dice : dice.slice(1, 1);
    return counted.mean(1).neg().add(1);
  }

  DiceConfig config_;
  bool has_labels_;
};

}  // namespace

void visit(config::Visitor& v, DiceConfig& c) {
  v.field(
      {.name = "smooth",
       .help =
           "smoothing term of numerator and denominator, which defines the loss without positives",
       .min = 0,
       .above_min = true},
      c.smooth);
  v.field({.name = "squared", .help = "square the terms of the denominator"}, c.squared);
  v.field({.name = "include_background", .help = "include class 0"}, c.include_background);
}

std::unique_ptr<Loss> make_dice(const DiceConfig& config, const LossContext& context) {
  require_labels("dice", context);
  if (!config.include_background && classes_of(context.output_sizes) < 2) {
    throw UsageError(
        "train.loss.include_background of dice is false, but there is one class alone, which would "
        "be left out; set it to true");
  }
  return std::make_unique<Dice>(config, !c10::isFloatingType(context.target_type));
}

}  // namespace gallop::train
