#include "gallop/train/losses/kl_divergence.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/kl_div.h>
#include <ATen/ops/log_softmax.h>

#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

class KlDivergence final : public Loss {
 public:
  explicit KlDivergence(const KlDivergenceConfig& config) : config_(config) {}

  at::Tensor sum(const model::Output& output, const NamedTensors& batch) const override {
    const at::Tensor logs = at::log_softmax(class_rows(widened(output.logits())), 1);
    const at::Tensor target = class_rows(field_of(batch, "target")).to(logs.scalar_type());
    return at::kl_div(logs, target, at::Reduction::Sum, config_.log_target);
  }

  at::Tensor count(const NamedTensors& batch) const override {
    const at::Tensor& target = field_of(batch, "target");
    return count_tensor(expected_count(target, target.size(0)), target);
  }
  int64_t expected_count(const at::Tensor& target, int64_t rows) const override {
    return Loss::expected_count(target, rows) / target.size(class_dimension(target));
  }
  LossTraits traits() const override { return {.counts_by_size = true, .counts_rows = true}; }

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
