#include "gallop/train/distillation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ne.h>

#include "gallop/base/error.h"
#include "gallop/data/text_samples.h"
#include "gallop/model/functional/cross_entropy.h"

namespace gallop::train {

void visit(config::Visitor& v, DistillConfig& c) {
  v.field(
      {.name = "teacher", .help = "teacher: a run (its best checkpoint) or a checkpoint's folder"},
      c.teacher);
  v.field({.name = "temperature",
           .help = "temperature of the softmax of both",
           .min = 0,
           .above_min = true},
          c.temperature);
  v.field({.name = "weight",
           .help = "weight of the distillation loss; the targets' loss has 1 - weight",
           .min = 0,
           .max = 1,
           .above_min = true},
          c.weight);
}

void check(const DistillConfig& config) {
  const DistillConfig defaults;
  if (!config.teacher.empty() ||
      (config.temperature == defaults.temperature && config.weight == defaults.weight)) {
    return;
  }
  throw UsageError("train.distill has a temperature or a weight, but no teacher; name a run");
}

at::Tensor distillation_sum(const at::Tensor& logits, const at::Tensor& teacher_logits,
                            const at::Tensor& target, double temperature) {
  const auto wide = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto rows_of = [&](const at::Tensor& all) {
    return all.reshape({-1, all.size(-1)}).to(wide).div(temperature);
  };
  at::Tensor shares, entropy;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor likely = at::log_softmax(rows_of(teacher_logits), 1);
    // A row that does not count has no share of anything.
    shares = likely.exp().mul(target.reshape({-1, 1}).ne(data::kIgnoredTarget).to(wide));
    entropy = shares.mul(likely).sum().neg();
  }
  const at::Tensor cross = model::functional::cross_entropy(rows_of(logits), shares, {}).loss;
  return cross.sub(entropy).mul(temperature * temperature);
}

}  // namespace gallop::train
