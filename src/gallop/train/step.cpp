#include "gallop/train/step.h"

#include <algorithm>
#include <cmath>

#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/base/philox.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/optim/gradients.h"

namespace gallop::train {

namespace {

// All rows come without the cost of a view.
at::Tensor rows_of(const at::Tensor& tensor, int64_t begin, int64_t end) {
  return end - begin == tensor.size(0) ? tensor : tensor.slice(0, begin, end);
}

// Without an operator where none is needed: a step of a small network takes half a millisecond.
void set(const at::Tensor& scalar, double value) {
  if (scalar.device().is_cpu()) {
    *scalar.mutable_data_ptr<float>() = static_cast<float>(value);
  } else {
    scalar.fill_(value);
  }
}

}  // namespace

TrainStep::TrainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config)
    : model_(model),
      optimizer_(optimizer),
      parameters_(model.parameters()),
      config_(config),
      device_(parameters_.front().tensor.device()),
      lr_(at::zeros({}, at::TensorOptions(at::kFloat).device(device_))),
      loss_weight_(at::zeros_like(lr_)),
      seed_and_step_(at::zeros({2}, at::kLong)) {
  if (config.precision == precision::Precision::kFp16)
    scaler_.emplace(precision::GradScalerConfig(), device_);
}

StepResult TrainStep::run(const at::Tensor& input, const at::Tensor& target, int64_t step,
                          double lr, bool count_guesses) {
  seed_step(config_.seed, step, device_);
  auto* const seed_and_step = seed_and_step_.mutable_data_ptr<int64_t>();
  seed_and_step[0] = static_cast<int64_t>(config_.seed);
  seed_and_step[1] = step;
  const model::functional::DropoutScope draws(seed_and_step_);
  for (const auto& parameter : parameters_) parameter.tensor.mutable_grad().reset();

  StepResult result;
  const int64_t rows = input.size(0);
  const int64_t pieces = std::min(config_.accumulate, rows);
  weigh_losses(target.numel());
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const int64_t begin = rows * piece / pieces, end = rows * (piece + 1) / pieces;
    result.tally.add(
        forward_backward(rows_of(input, begin, end), rows_of(target, begin, end), count_guesses));
  }
  update(lr, result);
  return result;
}

// Divides every sum of losses by the number of targets of the whole batch, within backward().
void TrainStep::weigh_losses(int64_t targets) {
  set(loss_weight_, 1.0 / static_cast<double>(targets));
  if (scaler_) loss_weight_.mul_(scaler_->scale());
}

Tally TrainStep::forward_backward(const at::Tensor& input, const at::Tensor& target,
                                  bool count_guesses) {
  Losses losses;
  {
    const precision::AutocastGuard autocast(config_.precision, input.device().type());
    losses = cross_entropy_sum(model_.forward_to_head(input), target, config_.label_smoothing,
                               count_guesses);
  }
  losses.sum.backward(loss_weight_);

  Tally tally;
  if (losses.right.defined()) tally.top1 = losses.right.item<int64_t>();
  tally.count = target.numel();
  tally.loss_sum = losses.sum.item<double>();
  return tally;
}

void TrainStep::update(double lr, StepResult& result) {
  if (!std::isfinite(result.tally.loss_sum)) {
    result.finite = false;
    result.bad_tensor = "loss";
  }
  at::Tensor norm;
  double scale = 1;
  if (config_.skip_nonfinite || config_.clip || scaler_ || !result.finite) {
    norm = optim::gradient_norm(optim::gradients_of(parameters_));
    if (scaler_) {
      scale = scaler_->scale().item<double>();
      scaler_->check(norm);
    }
    note_norm(norm.item<double>() / scale, result);
    if (result.finite) apply(lr, norm, scale);
  } else {
    norm = apply(lr, norm, scale);
    if (!norm.defined()) norm = optim::gradient_norm(optim::gradients_of(parameters_));
    note_norm(norm.item<double>(), result);
  }
  if (scaler_) scaler_->update();
}

// Clips, where that is wanted, as part of the update's own pass over the gradients.
at::Tensor TrainStep::apply(double lr, const at::Tensor& norm, double scale) {
  set(lr_, lr);
  at::Tensor divisor;
  if (config_.clip) divisor = optim::clip_divisor(norm, *config_.clip * scale);
  if (scaler_) divisor = divisor.defined() ? divisor.mul_(scaler_->scale()) : scaler_->scale();
  return optimizer_.step(lr_, divisor, scaler_ ? scaler_->found_inf() : at::Tensor());
}

void TrainStep::note_norm(double norm, StepResult& result) const {
  result.gradient_norm = norm;
  if (std::isfinite(norm) || !result.finite) return;
  result.finite = false;
  result.bad_tensor = optim::first_non_finite_gradient(parameters_);
}

NamedTensors TrainStep::state() const { return scaler_ ? scaler_->state() : NamedTensors(); }

void seed_step(uint64_t seed, int64_t step, at::Device device) {
  Philox random(seed, Purpose::kDropout, 0, static_cast<uint64_t>(step));
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(random.next_u64());
}

}  // namespace gallop::train
