#include "gallop/train/evaluate.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>

#include "gallop/base/clock.h"
#include "gallop/data/device_loader.h"
#include "gallop/kernel/shared_cores.h"

namespace gallop::train {

namespace {

Tally tally_of(const at::Tensor& logits, const at::Tensor& target) {
  Tally tally = count_right(logits, target, true);
  tally.loss_sum = cross_entropy_sum(logits, target, 0).item<double>();
  return tally;
}

// Adds what a model makes of a batch; returns its logits.
at::Tensor add_batch(model::Model& model, const data::Batch& batch, const TestViews& views,
                     Evaluation& evaluation) {
  if (!views.is_any()) {
    at::Tensor logits = model.forward(batch.input);
    evaluation.tally.add(tally_of(logits, batch.target));
    return logits;
  }
  at::Tensor mean;
  for (const auto& [images, weight] : views_of(batch.input, views)) {
    const at::Tensor logits = model.forward(images).to(at::kFloat);
    if (!mean.defined()) {
      if (!evaluation.one_view) evaluation.one_view.emplace();
      evaluation.one_view->add(tally_of(logits, batch.target));
    }
    mean = mean.defined() ? mean.add(logits, weight) : logits.mul(weight);
  }
  evaluation.tally.add(tally_of(mean, batch.target));
  return mean;
}

}  // namespace

std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop) {
  auto all = evaluate_ensemble({{model, config.precision}}, samples, config, stop);
  if (!all) return std::nullopt;
  return all->together;
}

std::optional<EnsembleEvaluation> evaluate_ensemble(const std::vector<Member>& members,
                                                    const data::Samples& samples,
                                                    const EvaluateConfig& config,
                                                    const StopRequest& stop) {
  const at::NoGradGuard no_gradients;
  const double start = monotonic_seconds();
  data::LoaderConfig in_order = config.loader;
  in_order.shuffle = false;
  in_order.drop_last = false;
  in_order.one_epoch = true;
  data::DeviceLoader loader(samples, in_order, {}, config.device);

  for (const Member& member : members) member.model.set_training(false);
  EnsembleEvaluation result{.each = std::vector<Evaluation>(members.size()), .together = {}};
  while (const auto batch = loader.next(&stop)) {
    for (Evaluation& one : result.each) one.skipped += batch->skipped;
    if (batch->size() == 0) continue;
    kernel::share_cores_with_others();
    at::Tensor sum;  // Logarithms of sums of probabilities, which do not underflow.
    for (size_t i = 0; i < members.size(); ++i) {
      const precision::AutocastGuard autocast(members[i].precision, config.device.type());
      const at::Tensor logits = add_batch(members[i].model, *batch, config.views, result.each[i]);
      if (members.size() == 1) break;
      const at::Tensor one = at::log_softmax(logits.to(at::kFloat), -1);
      sum = sum.defined() ? at::logaddexp(sum, one) : one;
    }
    // A common factor of the probabilities does not count.
    if (sum.defined()) result.together.tally.add(tally_of(sum, batch->target));
  }
  for (const Member& member : members) member.model.set_training(true);
  if (stop.requested()) return std::nullopt;
  if (members.size() == 1) result.together = result.each.front();
  result.together.skipped = result.each.front().skipped;
  result.together.seconds = monotonic_seconds() - start;
  return result;
}

}  // namespace gallop::train
