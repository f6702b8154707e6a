#include "gallop/train/losses/loss.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

Losses Loss::sum_and_correct(const model::Output& output, const NamedTensors& batch,
                             const Request& request) const {
  Losses losses{.sum = sum(output, batch), .correct = {}};
  const at::Tensor& target = field_of(batch, "target");
  if (request.count_correct && traits().predicts_classes && !target.is_floating_point()) {
    const at::Tensor logits = class_rows(output.logits().detach());
    const at::Tensor labels = label_rows(target, traits().ignored);
    losses.correct = at::eq(logits.argmax(1), labels).sum();
  }
  return losses;
}

int64_t Loss::expected_count(const at::Tensor& target, int64_t rows) const {
  for (int64_t i = 1; i < target.dim(); ++i) rows *= target.size(i);
  return rows;
}

at::Tensor Loss::predictions(const at::Tensor& outputs, const NamedTensors& batch) const {
  const auto names = static_cast<int64_t>(output_names().size());
  if (names == 0) return outputs;
  return outputs_by_target(outputs, field_of(batch, "target"), names).select(-1, 0);
}

std::shared_ptr<const Loss> build_loss(const LossRegistry& losses, const config::Component& chosen,
                                       const LossContext& context) {
  std::shared_ptr<const Loss> loss = losses.build(chosen, context);
  if (context.label_smoothing > 0 && !loss->traits().takes_smoothing) {
    throw UsageError(fmt::format(
        "train.label_smoothing is {}, and is an option of the loss cross-entropy, but train.loss "
        "is {}; set train.label_smoothing to 0, or train.loss to cross-entropy",
        context.label_smoothing, chosen.name()));
  }
  return loss;
}

}  // namespace gallop::train
