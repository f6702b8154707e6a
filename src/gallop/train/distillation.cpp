#include "gallop/train/distillation.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ne.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/cross_entropy.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

void visit(config::Visitor& v, DistillConfig& c) {
  v.field(
      {.name = "teacher", .help = "teacher: a run (its best checkpoint) or a checkpoint's folder"},
      c.teacher);
  v.field({.name = "temperature",
           .help = "softmax temperature of teacher and student",
           .min = 0,
           .above_min = true},
          c.temperature);
  v.field({.name = "weight",
           .help = "weight of the distillation loss; the loss of the targets has 1 - weight",
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
                            const at::Tensor& target, double temperature, int64_t ignored) {
  const auto wide = logits.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto softened = [&](const at::Tensor& all) {
    return class_rows(all).to(wide).div(temperature);
  };
  at::Tensor shares, entropy;
  {
    const at::NoGradGuard no_grad;
    const at::Tensor likely = at::log_softmax(softened(teacher_logits), 1);
    // Probabilities; 0 in rows that do not count.
    shares = likely.exp();
    if (!target.is_floating_point()) {
      const at::Tensor labels = label_rows(target, ignored).unsqueeze(1);
      shares = shares.mul(labels.ne(data::kIgnoredTarget).to(wide));
    }
    entropy = shares.mul(likely).sum().neg();
  }
  const at::Tensor cross = model::functional::cross_entropy(softened(logits), shares, {}).loss;
  return cross.sub(entropy).mul(temperature * temperature);
}

at::Tensor distillation_count(const at::Tensor& target, int64_t ignored) {
  if (!target.is_floating_point()) return count_labels(target, ignored);
  const int64_t classes = target.dim() < 2 ? 1 : target.size(class_dimension(target));
  return count_tensor(target.numel() / classes, target);
}

}  // namespace gallop::train
