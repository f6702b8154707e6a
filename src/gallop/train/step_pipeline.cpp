// The passes of a step in a pipeline.
#include <functional>

#include <ATen/core/grad_mode.h>

#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

// Not within the step, of which a dry run may record nothing but the step itself. Returns whether
// buffers may have changed and LibTorch's generator been used.
bool TrainStep::plan_pipeline(const NamedTensors& batch) {
  return pipeline_->plan_stages(micro_batches_of(batch), in_format());
}

std::vector<NamedTensors> TrainStep::micro_batches_of(const NamedTensors& batch) const {
  std::vector<NamedTensors> all;
  for (const Piece& piece : pieces_of(batch.front().tensor.size(0))) {
    all.push_back(slice_rows(batch, piece.begin, piece.end));
  }
  return all;
}

std::function<void(const std::function<void()>& pass)> TrainStep::in_format() const {
  return [this](const auto& pass) {
    const precision::AutocastGuard autocast(config_.precision, device_.type());
    pass();
  };
}

// The last stage alone has losses, which all processes get from the sums.
TrainStep::Sums TrainStep::forward_backward_in_pipeline(const StepInputs& inputs,
                                                        const Counts& counts, bool count_correct) {
  const std::vector<NamedTensors> batches = micro_batches_of(inputs.batch);
  Sums sums{.of_slices = Tensors(1)};
  at::Tensor& sum = sums.of_slices.front();
  const auto loss_of = [&](const model::Output& output, size_t micro_batch) {
    const Losses losses = losses_of(output, batches[micro_batch], inputs, counts, count_correct);
    const at::NoGradGuard no_grad;
    const at::Tensor loss = losses.sum.detach().to(at::kDouble);
    sum = sum.defined() ? sum.add(loss) : loss;
    if (losses.correct.defined()) {
      sums.top1 = sums.top1.defined() ? sums.top1.add(losses.correct) : losses.correct;
    }
    return losses.sum;
  };
  const at::Tensor& weight = inputs.loss_weight;
  pipeline_->run(batches, micro_batches(),
                 {.in_format = in_format(),
                  .loss_of = loss_of,
                  .loss_gradient = scaler_ ? weight.mul(scaler_->scale()) : weight,
                  .draws = {.seed_and_step = draws_of_dropout(inputs, 0),
                            .share = scheduled(ScheduledParameter::kDropout, inputs)}});
  // All along tp have computed the same losses, which count once.
  parallel::Collectives* const parts = config_.strategy->forward_group();
  if (parts != nullptr && parts->rank() != 0) sums = {.of_slices = Tensors(1)};
  finish_sharing(sums, inputs);
  return sums;
}

}  // namespace gallop::train
