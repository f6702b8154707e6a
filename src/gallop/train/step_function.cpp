// The step as a function of tensors, which is traced and compiled.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/AutogradState.h>

#include "gallop/base/trace.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/shared_batch_norm.h"
#include "gallop/optim/gradients.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/tensor/recording.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/losses/shared_rows.h"
#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

namespace {

// 0 if the number is finite, else NaN.
at::Tensor zero_if_finite(const at::Tensor& number) { return number.sub(number); }

at::Tensor sum_of(const at::Tensor& sum, const at::Tensor& more) {
  return sum.defined() ? sum.add(more) : more;
}

// The contribution of a term to the mean loss.
at::Tensor divided(const at::Tensor& sum, const at::Tensor& factors, size_t term) {
  return sum.mul(factors.select(0, static_cast<int64_t>(term)).to(sum.scalar_type()));
}

// Concatenates the results for one copy to the host; see Number.
at::Tensor in_one(const StepOutputs& outputs) {
  std::vector<at::Tensor> numbers = {outputs.loss_sum, outputs.gradient_norm.to(at::kDouble)};
  numbers.push_back(outputs.spike.defined() ? outputs.spike : at::zeros_like(outputs.loss_sum));
  if (outputs.target_count.defined()) numbers.push_back(outputs.target_count);
  if (outputs.correct.defined()) numbers.push_back(outputs.correct.to(at::kDouble));
  const at::Tensor all = at::stack(numbers);
  return outputs.shared_sums.defined() ? at::cat({all, outputs.shared_sums}) : all;
}

// Restores tensors, also if the step runs out of memory.
struct RestoreAtEnd {
  TensorSnapshot tensors{NamedTensors()};

  RestoreAtEnd() = default;
  ~RestoreAtEnd() { tensors.restore(); }
  RestoreAtEnd(const RestoreAtEnd&) = delete;
  RestoreAtEnd& operator=(const RestoreAtEnd&) = delete;
};

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

std::vector<at::Tensor> StepInputs::pack() const {
  std::vector<at::Tensor> tensors;
  for (const auto& [name, tensor] : batch) tensors.push_back(tensor);
  tensors.insert(tensors.end(), {lr, loss_weight, seed_and_step});
  tensors.insert(tensors.end(), scheduled.begin(), scheduled.end());
  if (shared.defined()) tensors.insert(tensors.end(), {own_seed_and_step, shared});
  return tensors;
}

StepInputs StepInputs::unpack(const std::vector<at::Tensor>& tensors, const StepInputs& like) {
  StepInputs inputs;
  auto next = tensors.begin();
  for (const auto& [name, tensor] : like.batch) inputs.batch.push_back({name, *next++});
  inputs.lr = *next++;
  inputs.loss_weight = *next++;
  inputs.seed_and_step = *next++;
  for (size_t i = 0; i < like.scheduled.size(); ++i) inputs.scheduled.push_back(*next++);
  if (!like.shared.defined()) return inputs;
  inputs.own_seed_and_step = *next++;
  inputs.shared = *next++;
  return inputs;
}

std::vector<at::Tensor> StepOutputs::pack() const {
  return {loss_sum, correct, gradient_norm, spike, shared_sums, target_count};
}

StepOutputs StepOutputs::unpack(const std::vector<at::Tensor>& tensors) {
  return {.loss_sum = tensors[0],
          .correct = tensors[1],
          .gradient_norm = tensors[2],
          .spike = tensors[3],
          .shared_sums = tensors[4],
          .target_count = tensors[5]};
}

at::Tensor TrainStep::scheduled(ScheduledParameter value, const StepInputs& inputs) const {
  for (size_t i = 0; i < config_.scheduled.size(); ++i) {
    if (config_.scheduled[i] == value) return inputs.scheduled[i];
  }
  return {};
}

at::Tensor TrainStep::draws_of_dropout(const StepInputs& inputs, int64_t slice) const {
  return shared_.defined() ? inputs.own_seed_and_step.select(0, slice) : inputs.seed_and_step;
}

TrainStep::Tensors TrainStep::compute(const StepInputs& inputs, bool count_correct) {
  std::optional<model::functional::SharedBatchNormScope> batch_norms;
  if (shares_batch_norm()) {
    batch_norms.emplace([](const at::Tensor& tensor) {
      parallel::all_reduce_async(tensor);
      parallel::wait_tensor(tensor);
    });
  }
  std::optional<SharedRowsScope> rows;
  if (rows_group_) rows.emplace(*rows_group_, whole_rows_);
  const Counts counts = counts_on_device_ ? count_targets_of_all(inputs) : Counts();
  const Sums sums = forward_backward(inputs, counts, count_correct);
  update_statistics(sums);
  Sums further;
  if (config_.sam) further = forward_backward_sam(inputs, counts, sums, *config_.sam);
  at::Tensor share, idle;
  if (counts_on_device_) {
    const at::NoGradGuard no_grad;
    idle = counts.targets.eq(0).to(at::kDouble);
  } else if (sums.shared.defined()) {
    share = sums.shared.select(0, kTargets).div(sums.shared.select(0, kAllTargets));
  }
  // Adds 0. The data dependency orders the update after all processes have done the last pass.
  if (further.shared.defined()) {
    at::Tensor& last = share.defined() ? share : idle;
    last = last.add(further.shared.select(0, kMissing));
  }
  if (share.defined()) idle = share.eq(0);
  const auto [gradient_norm, spike] = update(inputs, sums.loss, share, idle);
  const StepOutputs outputs{.loss_sum = sums.loss,
                            .correct = sums.top1,
                            .gradient_norm = gradient_norm,
                            .spike = spike,
                            .shared_sums = sums.shared,
                            .target_count = counts.targets};
  if (results_) return {in_one(outputs)};
  return outputs.pack();
}

int64_t TrainStep::batch_slices() const {
  return config_.strategy != nullptr ? config_.strategy->batch_slices() : 0;
}

bool TrainStep::divides_model() const {
  return config_.strategy != nullptr && config_.strategy->model_parallel_group() != nullptr;
}

bool TrainStep::counts_here() const {
  return !divides_model() || config_.strategy->model_parallel_group()->rank() == 0;
}

int TrainStep::batch_part() const {
  return config_.strategy != nullptr ? config_.strategy->data_parallel_group().rank() : 0;
}

bool TrainStep::shares_batch_norm() const {
  return config_.strategy != nullptr && config_.strategy->shares_batch_norm();
}

bool TrainStep::computes_empty_pieces() const {
  return shares_batch_norm() ||
         (config_.strategy != nullptr && config_.strategy->divides_forward_by_samples());
}

bool TrainStep::sums_each_micro_batch() const {
  return config_.strategy != nullptr && config_.strategy->sums_each_micro_batch();
}

// For batch slices, those of this process in order, including empty ones.
std::vector<TrainStep::Piece> TrainStep::pieces_of(int64_t rows) const {
  std::vector<Piece> pieces;
  if (const int64_t all = batch_slices(); all > 0) {
    const parallel::Collectives& collectives = config_.strategy->collectives();
    const int64_t each = all / collectives.size(), first = each * collectives.rank();
    const auto place = [&](int64_t slice) {
      return whole_rows_ * slice / all - whole_rows_ * first / all;
    };
    for (int64_t slice = first; slice < first + each; ++slice) {
      pieces.push_back({place(slice), place(slice + 1), slice});
    }
    return pieces;
  }
  // All processes must run layers with collectives, or sum gradients, the same number of times.
  const int64_t most = micro_batches();
  const int64_t count = computes_empty_pieces() || rows_group_ != nullptr || sums_each_micro_batch()
                            ? most
                            : std::min(most, rows);
  for (int64_t piece = 0; piece < count; ++piece) {
    pieces.push_back({rows * piece / count, rows * (piece + 1) / count});
  }
  return pieces;
}

// Leaves the gradients in the parameters.
TrainStep::Sums TrainStep::forward_backward(const StepInputs& inputs, const Counts& counts,
                                            bool count_correct) {
  optim::drop_gradients(parameters_);
  if (pipeline_) return forward_backward_in_pipeline(inputs, counts, count_correct);
  const auto place_of = [&](int64_t slice) {
    return model::functional::DropoutPlace{
        .seed_and_step = draws_of_dropout(inputs, slice),
        .share = scheduled(ScheduledParameter::kDropout, inputs)};
  };
  auto draws = place_of(0);
  const auto pieces = pieces_of(inputs.rows());
  const bool is_sliced = batch_slices() > 0;
  Sums sums{.of_slices = Tensors(static_cast<size_t>(std::max<int64_t>(1, batch_slices())))};
  const bool sums_each = sums_each_micro_batch();
  if (is_sliced) begin_gradient_sync(/*is_first=*/true, /*is_last=*/true);
  for (const Piece& piece : pieces) {
    const bool is_last = &piece == &pieces.back();
    const auto begin_sync = [&] {
      if (!shared_.defined() || is_sliced || (!is_last && !sums_each)) return;
      begin_gradient_sync(!sums_each || &piece == &pieces.front(), is_last);
    };
    const auto end_sync = [&] {
      const at::NoGradGuard no_grad;
      if (sums_each && !is_last) config_.strategy->finish_gradient_sync();
    };
    if (sums_each && !computes_empty_pieces() && piece.begin == piece.end) {
      begin_sync();
      end_sync();
      continue;
    }
    if (is_sliced && piece.begin == piece.end) {
      config_.strategy->finish_slice(piece.slice, /*has_samples=*/false);
      continue;
    }
    if (is_sliced) draws = place_of(piece.slice);
    const model::functional::DropoutScope scope(draws);
    const Losses losses =
        losses_of(slice_rows(inputs.batch, piece.begin, piece.end), inputs, counts, count_correct);
    {
      const at::NoGradGuard no_grad;
      at::Tensor& loss = sums.of_slices[static_cast<size_t>(piece.slice)];
      loss = sum_of(loss, losses.sum.detach().to(at::kDouble));
      if (losses.correct.defined()) sums.top1 = sum_of(sums.top1, losses.correct);
      if (losses.step_statistics.defined()) {
        sums.statistics = sum_of(sums.statistics, losses.step_statistics);
      }
    }
    begin_sync();
    backward(losses.sum, inputs);
    end_sync();
    draws = model::functional::DropoutScope::place();
    if (is_sliced) config_.strategy->finish_slice(piece.slice, /*has_samples=*/true);
  }
  if (shared_.defined() && !is_sliced && pieces.empty()) {
    begin_gradient_sync(/*is_first=*/true, /*is_last=*/true);
  }
  if (shared_.defined()) {
    // All of a group have computed the same losses, which count once.
    if (!counts_here()) sums = {.of_slices = Tensors(1)};
    finish_sharing(sums, inputs);
  } else {
    sums.loss = sums.of_slices.front();
  }
  return sums;
}

void TrainStep::backward(const at::Tensor& loss_sum, const StepInputs& inputs) {
  const TraceSpan span(SpanKind::kPhase, "backward");
  std::optional<BackwardOnThisThread> on_this_thread;
  if (shared_.defined()) on_this_thread.emplace();
  const at::Tensor& weight = inputs.loss_weight;
  loss_sum.backward(scaler_ ? weight.mul(scaler_->scale()) : weight);
}

// From here on, gradients are all-reduced as they are produced.
void TrainStep::begin_gradient_sync(bool is_first, bool is_last) {
  const at::NoGradGuard no_grad;
  config_.strategy->begin_gradient_sync(
      {.rows = whole_rows_, .is_first = is_first, .is_last = is_last});
}

// The last all-reduce of a pass also shows whether all processes have completed it.
void TrainStep::finish_sharing(Sums& sums, const StepInputs& inputs) {
  const at::NoGradGuard no_grad;
  config_.strategy->finish_gradient_sync();
  const at::Tensor zero = at::zeros({1}, shared_.options());
  Tensors numbers = {sums.top1.defined() ? sums.top1.to(at::kDouble).reshape({1}) : zero,
                     inputs.shared};
  for (const at::Tensor& loss : sums.of_slices) {
    numbers.push_back(loss.defined() ? loss.reshape({1}) : zero);
  }
  sums.shared = at::cat(numbers);
  parallel::all_reduce_async(sums.shared);
  parallel::wait_tensor(sums.shared);
  parallel::require_all_done(sums.shared, kMissing);
  sums.loss = sums.shared.slice(0, kFirstLoss).sum();
  sums.top1 = at::Tensor();
}

// After a pass that all processes have completed, on which the all-reduce depends by a 0.
void TrainStep::update_statistics(const Sums& sums) {
  const int64_t size = model_.statistics_size();
  if (size == 0) return;
  const at::NoGradGuard no_grad;
  at::Tensor statistics = sums.statistics;
  if (shared_.defined()) {
    if (!statistics.defined()) statistics = at::zeros({size}, shared_.options());
    statistics = statistics.add(sums.shared.select(0, kMissing));
    parallel::all_reduce_async(statistics);
    parallel::wait_tensor(statistics);
  }
  model_.update_statistics(statistics);
}

// Replaces the gradients by those at `distance` from the weights.
TrainStep::Sums TrainStep::forward_backward_sam(const StepInputs& inputs, const Counts& counts,
                                                const Sums& first, double distance) {
  constexpr double kLeastNorm = 1e-12;
  RestoreAtEnd kept;
  {
    const at::NoGradGuard no_grad;
    at::Tensor norm = updated().gradient_norm();
    // Adds 0. The data dependency orders the second pass, with its all-reduces, after the first.
    if (first.shared.defined()) {
      norm = norm.add(first.shared.select(0, kMissing).to(norm.scalar_type()));
    }
    const at::Tensor share = norm.add(kLeastNorm).reciprocal().mul(distance).to(at::kFloat);
    for (const auto& [name, tensor] : parameters_) {
      if (!tensor.grad().defined()) continue;
      kept.tensors.keep({{name, tensor}});
      tensor.add_(tensor.grad().mul(share));
    }
    kept.tensors.keep(model_.buffers());
  }
  return forward_backward(inputs, counts, /*count_correct=*/false);
}

model::Output TrainStep::forward(const NamedTensors& batch) {
  const TraceSpan span(SpanKind::kPhase, "forward");
  if (config_.strategy != nullptr) config_.strategy->begin_forward();
  return model_.forward_to_head(batch);
}

Losses TrainStep::losses_of(const NamedTensors& batch, const StepInputs& inputs,
                            const Counts& counts, bool count_correct) {
  const precision::AutocastGuard autocast(config_.precision, device_.type());
  return losses_of(forward(batch), batch, inputs, counts, count_correct);
}

Losses TrainStep::losses_of(model::Output output, const NamedTensors& batch,
                            const StepInputs& inputs, const Counts& counts, bool count_correct) {
  const TraceSpan span(SpanKind::kPhase, "loss");
  const at::Tensor auxiliary = auxiliary_of(output, batch, counts);
  const at::Tensor statistics = output.step_statistics;
  // Several losses read the logits.
  if (config_.distill || terms_.size() > 1) {
    output = {.x = output.logits(), .loss = output.loss, .members = output.members};
  }
  Losses losses;
  losses.step_statistics = statistics;
  for (size_t i = 0; i < terms_.size(); ++i) {
    Loss::Request request{.count_correct = count_correct && !losses.correct.defined()};
    if (terms_[i].loss->traits().takes_smoothing) {
      request.label_smoothing = scheduled(ScheduledParameter::kLabelSmoothing, inputs);
    }
    const Losses of_term = train::losses_of(*terms_[i].loss, output, batch, request);
    if (of_term.correct.defined()) losses.correct = of_term.correct;
    const at::Tensor sum =
        counts_on_device_ ? divided(of_term.sum, counts.factors, i) : of_term.sum;
    losses.sum = sum_of(losses.sum, sum);
  }
  if (config_.distill) {
    const at::Tensor taught = teach(output, batch);
    const double weight = config_.distill->weight;
    losses.sum = counts_on_device_ ? losses.sum.add(divided(taught, counts.factors, terms_.size()))
                                   : losses.sum.mul(1 - weight).add(taught, weight);
  }
  if (auxiliary.defined()) losses.sum = losses.sum.add(auxiliary);
  return losses;
}

// What the model's own loss contributes to a sum that is divided as that of the first term is. It
// is a mean over tokens, however many of them are targets.
at::Tensor TrainStep::auxiliary_of(const model::Output& output, const NamedTensors& batch,
                                   const Counts& counts) const {
  const at::Tensor& sum = output.auxiliary_loss;
  if (!sum.defined()) return {};
  if (counts_on_device_) {
    return divided(sum, counts.factors, static_cast<size_t>(counts.factors.size(0) - 1));
  }
  const at::Tensor &input = batch[0].tensor, &target = batch[1].tensor;
  const int64_t targets = terms_.front().loss->expected_count(target, target.size(0));
  if (targets == input.numel()) return sum;
  return sum.mul(static_cast<double>(targets) / static_cast<double>(input.numel()));
}

at::Tensor TrainStep::teach(const model::Output& output, const NamedTensors& batch) const {
  const auto& [teacher, temperature, weight] = *config_.distill;
  at::Tensor taught;
  {
    const at::NoGradGuard no_grad;
    // Without samples there is nothing to learn, and a teacher may not support it.
    taught = output.x.size(0) > 0 ? teacher->forward(batch) : output.x.detach();
  }
  return distillation_sum(output.x, taught, batch[1].tensor, temperature,
                          config_.loss->traits().ignored);
}

TrainStep::Updated TrainStep::update(const StepInputs& inputs, const at::Tensor& loss_sum,
                                     const at::Tensor& share, const at::Tensor& idle) {
  const TraceSpan span(SpanKind::kPhase, "optimizer");
  const at::NoGradGuard no_grad;
  // A trace changes nothing.
  updating_ = !is_recording();
  at::Tensor found_inf = zero_if_finite(loss_sum), spike;
  // Without any target, the update is skipped.
  if (idle.defined()) found_inf = found_inf.add(idle);
  if (spikes_) {
    at::Tensor loss = loss_sum.mul(inputs.loss_weight);
    if (share.defined()) {
      loss = loss.div(share);
    } else if (idle.defined()) {
      loss = loss.div(idle.eq(0));  // NaN without any target, which the mean excludes.
    }
    spike = spikes_->note(loss);
    found_inf = found_inf.add(spike);
  }
  const Updated result{.gradient_norm = apply(inputs, found_inf, share), .spike = spike};
  // Their memory has been used to gather the parameters.
  if (updated().are_parts() && !keeps_gradients_of_parts()) optim::drop_gradients(parameters_);
  return result;
}

// Returns the norm of the gradients before they are clipped. Clipping by norm is fused into the
// update's pass over the gradients.
at::Tensor TrainStep::apply(const StepInputs& inputs, at::Tensor found_inf,
                            const at::Tensor& share) {
  const optim::ScheduledOptions options{
      .momentum = scheduled(ScheduledParameter::kMomentum, inputs),
      .beta2 = scheduled(ScheduledParameter::kBeta2, inputs),
      .weight_decay = scheduled(ScheduledParameter::kWeightDecay, inputs),
      .draws = inputs.seed_and_step};
  const bool clips = config_.clip_grad_norm || config_.clip_value || config_.clip_adaptive;
  // The factor by which the gradients are scaled.
  at::Tensor scale = share.defined() ? share.to(at::kFloat) : at::Tensor();
  // Without any target, the gradients are 0, and so is their norm.
  if (scale.defined()) scale = scale.add(scale.eq(0));
  if (const auto* const replicas = local_replicas()) {
    if (!scale.defined()) scale = at::ones({}, inputs.lr.options());
    scale = scale.div(replicas->processes());
  }
  if (scaler_) scale = scale.defined() ? scale.mul(scaler_->scale()) : scaler_->scale();
  const auto unscaled = [&scale](const at::Tensor& norm) {
    return scale.defined() ? norm.div(scale) : norm;
  };
  const optim::UpdatedParameters& updated = this->updated();
  if (!config_.skip_nonfinite && !clips && !scaler_) {
    at::Tensor norm = updated.are_parts() ? updated.gradient_norm() : at::Tensor();
    const at::Tensor of_update = optimizer_.step(inputs.lr, scale, found_inf, options);
    if (!norm.defined()) norm = of_update.defined() ? of_update : updated.gradient_norm();
    return unscaled(norm);
  }
  const at::Tensor norm = updated.gradient_norm();
  found_inf = found_inf.add(zero_if_finite(norm));
  if (scaler_) scaler_->check(norm);
  at::Tensor grad_scale = scale;
  if (config_.clip_grad_norm) {
    const at::Tensor clip = optim::clip_divisor(unscaled(norm), *config_.clip_grad_norm);
    grad_scale = scale.defined() ? clip.mul(scale) : clip;
  }
  if (config_.clip_value) {
    optim::clip_values(optim::gradients_of(updated.tensors()), *config_.clip_value, scale);
  }
  if (config_.clip_adaptive) optim::clip_adaptively(parameters_, *config_.clip_adaptive, scale);
  optimizer_.step(inputs.lr, grad_scale, found_inf, options);
  if (scaler_) scaler_->update();
  return unscaled(norm);
}

}  // namespace gallop::train
