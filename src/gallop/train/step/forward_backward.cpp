#include "gallop/train/step/forward_backward.h"

#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <c10/core/AutogradState.h>

#include "gallop/base/trace.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/optim/gradients.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/step/pipeline.h"

namespace gallop::train {

namespace {

// Gradient hooks start all-reduces, which only this thread may do. Otherwise autograd would use one
// thread per GPU.
class BackwardOnThisThread {
 public:
  BackwardOnThisThread() { state().set_multithreading_enabled(false); }
  ~BackwardOnThisThread() { state().set_multithreading_enabled(before_); }
  BackwardOnThisThread(const BackwardOnThisThread&) = delete;
  BackwardOnThisThread& operator=(const BackwardOnThisThread&) = delete;

 private:
  static c10::AutogradState& state() { return c10::AutogradState::get_tls_state(); }

  bool before_ = state().get_multithreading_enabled();
};

}  // namespace

ForwardBackward::ForwardBackward(model::Model& model, const StepConfig& config,
                                 const StepSharing& sharing, const MicroBatches& micro_batches,
                                 const BatchLoss& loss, at::Tensor loss_scale)
    : model_(model),
      config_(config),
      sharing_(sharing),
      micro_batches_(micro_batches),
      loss_(loss),
      loss_scale_(std::move(loss_scale)),
      device_(model.parameters().front().tensor.device()),
      parameters_(model.parameters()) {
  if (sharing.is_shared() && sharing.strategy().pipeline() != nullptr) {
    pipeline_ = std::make_unique<PipelineStep>(model, *sharing.strategy().pipeline());
  }
}

ForwardBackward::~ForwardBackward() = default;

BatchSums ForwardBackward::run(const StepInputs& inputs, const BatchCounts& counts,
                               bool count_correct) {
  optim::drop_gradients(parameters_);
  const Partial sums = pipeline_ ? run_pipeline(inputs, counts, count_correct)
                                 : run_micro_batches(inputs, counts, count_correct);
  if (sharing_.is_shared()) return sums_over_processes(sums, inputs);
  return {.loss = sums.losses.front(), .correct = sums.correct, .statistics = sums.statistics};
}

ForwardBackward::Partial ForwardBackward::run_micro_batches(const StepInputs& inputs,
                                                            const BatchCounts& counts,
                                                            bool count_correct) {
  const auto place_of = [&](int64_t slice) {
    return model::functional::DropoutPlace{
        .seed_and_step = inputs.dropout_seed_of(slice),
        .share = inputs.value_of(ScheduledParameter::kDropout, config_)};
  };
  auto draws = place_of(0);
  const std::vector<MicroBatch> micro_batches = micro_batches_.of(rows_of(inputs.batch));
  const bool is_sliced = sharing_.batch_slices() > 0;
  const bool sums_each = sharing_.sums_each_micro_batch();
  Partial sums{.losses = std::vector<at::Tensor>(sharing_.losses())};
  if (is_sliced) begin_gradient_sync(/*is_first=*/true, /*is_last=*/true);
  for (const MicroBatch& micro_batch : micro_batches) {
    const bool is_first = &micro_batch == &micro_batches.front();
    const bool is_last = &micro_batch == &micro_batches.back();
    const auto begin_sync = [&] {
      if (!sharing_.is_shared() || is_sliced || (!is_last && !sums_each)) return;
      begin_gradient_sync(!sums_each || is_first, is_last);
    };
    const auto end_sync = [&] {
      const at::NoGradGuard no_grad;
      if (sums_each && !is_last) sharing_.strategy().finish_gradient_sync();
    };
    if (micro_batch.is_empty() && sums_each && !sharing_.computes_empty_micro_batches()) {
      begin_sync();
      end_sync();
      continue;
    }
    if (micro_batch.is_empty() && is_sliced) {
      sharing_.strategy().finish_slice(micro_batch.slice, /*has_samples=*/false);
      continue;
    }
    if (is_sliced) draws = place_of(micro_batch.slice);
    const model::functional::DropoutScope scope(draws);
    const Losses losses = forward(slice_rows(inputs.batch, micro_batch.begin, micro_batch.end),
                                  inputs, counts, count_correct);
    sums.add(losses, micro_batch.slice);
    begin_sync();
    backward(losses.sum, inputs);
    end_sync();
    draws = model::functional::DropoutScope::place();
    if (is_sliced) sharing_.strategy().finish_slice(micro_batch.slice, /*has_samples=*/true);
  }
  if (sharing_.is_shared() && !is_sliced && micro_batches.empty()) {
    begin_gradient_sync(/*is_first=*/true, /*is_last=*/true);
  }
  // All of a group have computed the same losses, which count once.
  if (!sharing_.counts_here()) sums = {.losses = std::vector<at::Tensor>(1)};
  return sums;
}

void ForwardBackward::Partial::add(const Losses& of_micro_batch, int64_t slice) {
  const at::NoGradGuard no_grad;
  at::Tensor& loss = losses[static_cast<size_t>(slice)];
  loss = sum_of(loss, of_micro_batch.sum.detach().to(at::kDouble));
  if (of_micro_batch.correct.defined()) correct = sum_of(correct, of_micro_batch.correct);
  if (of_micro_batch.step_statistics.defined()) {
    statistics = sum_of(statistics, of_micro_batch.step_statistics);
  }
}

Losses ForwardBackward::forward(const NamedTensors& batch, const StepInputs& inputs,
                                const BatchCounts& counts, bool count_correct) {
  const precision::AutocastGuard autocast(config_.precision, device_.type());
  model::Output output;
  {
    const TraceSpan span(SpanKind::kPhase, "forward");
    if (sharing_.is_shared()) sharing_.strategy().begin_forward();
    output = model_.forward_to_head(batch);
  }
  return losses_of(std::move(output), batch, inputs, counts, count_correct);
}

// The last stage alone has losses, which all processes get from the sums.
ForwardBackward::Partial ForwardBackward::run_pipeline(const StepInputs& inputs,
                                                       const BatchCounts& counts,
                                                       bool count_correct) {
  const std::vector<NamedTensors> batches = micro_batches_.slices_of(inputs.batch);
  Partial sums{.losses = std::vector<at::Tensor>(1)};
  const auto loss_of = [&](const model::Output& output, size_t micro_batch) {
    const Losses losses = losses_of(output, batches[micro_batch], inputs, counts, count_correct);
    sums.add(losses, /*slice=*/0);
    return losses.sum;
  };
  pipeline_->run(batches, micro_batches_.most(),
                 {.in_format = in_format(),
                  .loss_of = loss_of,
                  .loss_gradient = loss_gradient(inputs),
                  .draws = {.seed_and_step = inputs.dropout_seed_of(0),
                            .share = inputs.value_of(ScheduledParameter::kDropout, config_)}});
  // All along tp have computed the same losses, which count once.
  parallel::Collectives* const parts = sharing_.strategy().forward_group();
  if (parts != nullptr && parts->rank() != 0) sums = {.losses = std::vector<at::Tensor>(1)};
  return sums;
}

Losses ForwardBackward::losses_of(model::Output output, const NamedTensors& batch,
                                  const StepInputs& inputs, const BatchCounts& counts,
                                  bool count_correct) const {
  return loss_(std::move(output), batch, counts,
               inputs.value_of(ScheduledParameter::kLabelSmoothing, config_), count_correct);
}

// The gradient of a sum of losses, with which a backward pass begins.
at::Tensor ForwardBackward::loss_gradient(const StepInputs& inputs) const {
  return loss_scale_.defined() ? inputs.loss_weight.mul(loss_scale_) : inputs.loss_weight;
}

void ForwardBackward::backward(const at::Tensor& loss_sum, const StepInputs& inputs) {
  const TraceSpan span(SpanKind::kPhase, "backward");
  std::optional<BackwardOnThisThread> on_this_thread;
  if (sharing_.is_shared()) on_this_thread.emplace();
  loss_sum.backward(loss_gradient(inputs));
}

// From here on, gradients are all-reduced as they are produced.
void ForwardBackward::begin_gradient_sync(bool is_first, bool is_last) {
  const at::NoGradGuard no_grad;
  sharing_.strategy().begin_gradient_sync(
      {.rows = micro_batches_.whole_rows(), .is_first = is_first, .is_last = is_last});
}

// The last all-reduce of a pass also shows whether all processes have completed it.
BatchSums ForwardBackward::sums_over_processes(const Partial& sums, const StepInputs& inputs) {
  const at::NoGradGuard no_grad;
  sharing_.strategy().finish_gradient_sync();
  const at::Tensor zero = at::zeros({1}, inputs.shared.options());
  std::vector<at::Tensor> numbers = {
      sums.correct.defined() ? sums.correct.to(at::kDouble).reshape({1}) : zero, inputs.shared};
  for (const at::Tensor& loss : sums.losses) {
    numbers.push_back(loss.defined() ? loss.reshape({1}) : zero);
  }
  at::Tensor shared = at::cat(numbers);
  parallel::all_reduce_async(shared);
  parallel::wait_tensor(shared);
  parallel::require_all_done(shared, kMissing);
  return {
      .loss = shared.slice(0, kFirstLoss).sum(), .shared = shared, .statistics = sums.statistics};
}

bool ForwardBackward::plan_pipeline(const NamedTensors& batch) {
  return pipeline_ && pipeline_->plan_stages(micro_batches_.slices_of(batch), in_format());
}

std::function<void(const std::function<void()>& pass)> ForwardBackward::in_format() const {
  return [this](const auto& pass) {
    const precision::AutocastGuard autocast(config_.precision, device_.type());
    pass();
  };
}

}  // namespace gallop::train
