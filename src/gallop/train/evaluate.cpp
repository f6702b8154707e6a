#include "gallop/train/evaluate.h"

#include <ATen/core/grad_mode.h>

#include "gallop/base/clock.h"
#include "gallop/data/device_loader.h"

namespace gallop::train {

std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop) {
  const at::NoGradGuard no_gradients;
  const double start = monotonic_seconds();
  data::LoaderConfig in_order = config.loader;
  in_order.shuffle = false;
  in_order.drop_last = false;
  in_order.one_epoch = true;
  data::DeviceLoader loader(samples, in_order, {}, config.device);

  model.set_training(false);
  std::optional<Evaluation> evaluation(std::in_place);
  while (const auto batch = loader.next(&stop)) {
    evaluation->skipped += batch->skipped;
    if (batch->size() == 0) continue;
    const precision::AutocastGuard autocast(config.precision, config.device.type());
    const at::Tensor logits = model.forward(batch->input);
    Tally tally = count_right(logits, batch->target, true);
    tally.loss_sum = cross_entropy_sum(logits, batch->target, 0).item<double>();
    evaluation->tally.add(tally);
  }
  model.set_training(true);
  if (stop.requested()) return std::nullopt;
  evaluation->seconds = monotonic_seconds() - start;
  return evaluation;
}

}  // namespace gallop::train
