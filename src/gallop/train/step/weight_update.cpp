#include "gallop/train/step/weight_update.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>

#include "gallop/base/trace.h"
#include "gallop/optim/gradients.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/tensor/recording.h"

namespace gallop::train {

namespace {

// 0 if the number is finite, else NaN.
at::Tensor zero_if_finite(const at::Tensor& number) { return number.sub(number); }

}  // namespace

WeightUpdate::WeightUpdate(const NamedTensors& parameters, optim::Optimizer& optimizer,
                           const StepConfig& config, const StepSharing& sharing)
    : parameters_(parameters),
      whole_(parameters),
      optimizer_(optimizer),
      config_(config),
      sharing_(sharing) {
  const at::Device device = parameters.front().tensor.device();
  if (config.precision == precision::Precision::kFp16) scaler_.emplace(config.loss_scale, device);
  if (config.spikes) spikes_.emplace(*config.spikes, device);
}

WeightUpdate::Result WeightUpdate::run(const StepInputs& inputs, const at::Tensor& loss_sum,
                                       const at::Tensor& share, const at::Tensor& idle) {
  const TraceSpan span(SpanKind::kPhase, "optimizer");
  const at::NoGradGuard no_grad;
  // A trace changes nothing.
  has_begun_ = !is_recording();
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
  const Result result{.gradient_norm = apply(inputs, found_inf, share), .spike = spike};
  // Their memory has been used to gather the parameters.
  if (updated().are_parts() && !keeps_gradients_of_parts()) optim::drop_gradients(parameters_);
  return result;
}

// Clipping by norm is fused into the update's pass over the gradients.
at::Tensor WeightUpdate::apply(const StepInputs& inputs, at::Tensor found_inf,
                               const at::Tensor& share) {
  const optim::ScheduledOptions options{
      .momentum = inputs.value_of(ScheduledParameter::kMomentum, config_),
      .beta2 = inputs.value_of(ScheduledParameter::kBeta2, config_),
      .weight_decay = inputs.value_of(ScheduledParameter::kWeightDecay, config_),
      .draws = inputs.seed_and_step};
  const at::Tensor scale = gradient_scale(inputs, share);
  const auto unscaled = [&scale](const at::Tensor& norm) {
    return scale.defined() ? norm.div(scale) : norm;
  };
  const optim::UpdatedParameters& updated = this->updated();
  if (!config_.skip_nonfinite && !config_.clips() && !scaler_) {
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

// The factor by which the gradients are scaled; undefined for 1.
at::Tensor WeightUpdate::gradient_scale(const StepInputs& inputs, const at::Tensor& share) const {
  at::Tensor scale = share.defined() ? share.to(at::kFloat) : at::Tensor();
  // Without any target, the gradients are 0, and so is their norm.
  if (scale.defined()) scale = scale.add(scale.eq(0));
  if (const parallel::ModelAverager* const replicas = sharing_.local_replicas()) {
    if (!scale.defined()) scale = at::ones({}, inputs.lr.options());
    scale = scale.div(replicas->processes());
  }
  if (scaler_) scale = scale.defined() ? scale.mul(scaler_->scale()) : scaler_->scale();
  return scale;
}

const optim::UpdatedParameters& WeightUpdate::updated() const {
  const optim::UpdatedParameters* const parts =
      sharing_.is_shared() ? sharing_.strategy().updated() : nullptr;
  return parts != nullptr ? *parts : whole_;
}

bool WeightUpdate::keeps_gradients_of_parts() const {
  return updated().are_parts() && sharing_.strategy().shards() == nullptr;
}

NamedTensors WeightUpdate::state() const {
  NamedTensors all = scaler_ ? scaler_->state() : NamedTensors();
  if (spikes_) {
    for (const NamedTensor& one : spikes_->state()) all.push_back(one);
  }
  return all;
}

}  // namespace gallop::train
