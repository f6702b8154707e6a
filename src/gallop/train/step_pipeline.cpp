// The passes of a step in a pipeline.
#include <algorithm>

#include <ATen/core/grad_mode.h>

#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

namespace {

constexpr int64_t kRowsToCountDraws = 2;

}  // namespace

void TrainStep::count_draws_of_pipeline(const at::Tensor& input) {
  if (pipeline_->has_counted_draws() || input.size(0) == 0) return;
  pipeline_->count_draws(input.slice(0, 0, kRowsToCountDraws), [this](const auto& pass) {
    const precision::AutocastGuard autocast(config_.precision, device_.type());
    pass();
  });
}

// The last stage alone has losses, which all processes get from the sums.
TrainStep::Sums TrainStep::forward_backward_in_pipeline(const StepInputs& inputs,
                                                        const Counts& counts, bool count_correct) {
  std::vector<NamedTensors> batches;
  Tensors model_inputs;
  for (const Piece& piece : pieces_of(inputs.rows())) {
    batches.push_back(slice_rows(inputs.batch, piece.begin, piece.end));
    model_inputs.push_back(batches.back().front().tensor);
  }
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
  pipeline_->run(model_inputs, micro_batches(),
                 {.in_format =
                      [this](const auto& pass) {
                        const precision::AutocastGuard autocast(config_.precision, device_.type());
                        pass();
                      },
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
