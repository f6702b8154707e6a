#include "gallop/train/losses/kl_divergence.h"

#include <functional>

#include <ATen/core/Reduction.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

// Largest error of the sum of a target's probabilities, which files store rounded.
constexpr double kTolerance = 1e-2;

class KlDivergence final : public Loss {
 public:
  explicit KlDivergence(const KlDivergenceConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logs = at::log_softmax(class_rows(widened(output.logits())), 1);
    const at::Tensor target = class_rows(field_of(batch, "target")).to(logs.scalar_type());
    const at::Tensor weights = weights_by_row(batch, field_of(batch, "target"));
    if (!weights.defined()) return at::kl_div(logs, target, at::Reduction::Sum, config_.log_target);
    return weighted_total(at::kl_div(logs, target, at::Reduction::None, config_.log_target).sum(1),
                          weights);
  }

  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = field_of(batch, "target");
    const at::Tensor weights = weights_by_row(batch, target);
    if (weights.defined()) return weights.to(at::kDouble).sum();
    return count_tensor(expected_count(target, target.size(0)), target);
  }
  int64_t expected_count(const at::Tensor& target, int64_t rows) const override {
    return Loss::expected_count(target, rows) / target.size(class_dimension(target));
  }
  LossTraits traits() const override {
    return {
        .counts_by_size = true, .counts_rows = true, .is_of_units = false, .takes_weights = true};
  }

  void check_targets(const std::function<at::Tensor()>& some_targets) const override {
    at::Tensor rows = class_rows(some_targets()).to(at::kDouble);
    if (config_.log_target) rows = rows.exp();
    if (rows.ge(0).logical_and(rows.sum(1, true).sub(1).abs().le(kTolerance)).all().item<bool>()) {
      return;
    }
    throw UsageError(fmt::format(
        "train.loss: kl-divergence needs targets that are {} of all classes, but those of the "
        "training data do not add up to 1",
        config_.log_target ? "logarithms of the probabilities" : "the probabilities"));
  }

 private:
  KlDivergenceConfig config_;
};

}  // namespace

void visit(config::Visitor& v, KlDivergenceConfig& c) {
  v.field({.name = "log_target", .help = "targets are logarithms of probabilities"}, c.log_target);
}

std::unique_ptr<Loss> make_kl_divergence(const KlDivergenceConfig& config,
                                         const LossContext& context) {
  require_values("kl-divergence", context);
  return std::make_unique<KlDivergence>(config);
}

}  // namespace gallop::train
