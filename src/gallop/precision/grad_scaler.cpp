#include "gallop/precision/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::precision {

namespace {

void check_config(const GradScalerConfig& config) {
  if (!(config.initial > 0)) {
    throw UsageError(fmt::format("loss scale: initial must be above 0, not {}", config.initial));
  }
  if (!(config.growth > 1)) {
    throw UsageError(fmt::format("loss scale: growth must be above 1, not {}", config.growth));
  }
  if (!(config.backoff > 0 && config.backoff < 1)) {
    throw UsageError(
        fmt::format("loss scale: backoff must be between 0 and 1, not {}", config.backoff));
  }
  if (config.interval < 1) {
    throw UsageError(
        fmt::format("loss scale: interval must be at least 1, not {}", config.interval));
  }
}

}  // namespace

void visit(config::Visitor& visitor, GradScalerConfig& config) {
  visitor.field({.name = "initial", .help = "initial loss scale", .min = 0, .above_min = true},
                config.initial);
  visitor.field(
      {.name = "growth", .help = "growth factor of the loss scale", .min = 1, .above_min = true},
      config.growth);
  visitor.field({.name = "backoff",
                 .help = "backoff factor of the loss scale after an overflow",
                 .min = 0,
                 .max = 1,
                 .above_min = true,
                 .below_max = true},
                config.backoff);
  visitor.field({.name = "interval",
                 .help = "consecutive finite steps before the loss scale grows",
                 .min = 1},
                config.interval);
}

GradScaler::GradScaler(const GradScalerConfig& config, at::Device device) : config_(config) {
  check_config(config);
  const auto on_device = at::TensorOptions().device(device);
  scale_ = at::scalar_tensor(config.initial, on_device.dtype(c10::kFloat));
  found_inf_ = at::zeros({}, on_device.dtype(c10::kFloat));
  growth_tracker_ = at::zeros({}, on_device.dtype(c10::kInt));
  skipped_steps_ = at::zeros({}, on_device.dtype(c10::kLong));
}

void GradScaler::check(const at::Tensor& scaled_norm) {
  const at::NoGradGuard no_grad;
  found_inf_.copy_(at::isfinite(scaled_norm).logical_not());
}

void GradScaler::update() {
  const at::NoGradGuard no_grad;
  skipped_steps_.add_(found_inf_.to(c10::kLong));
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, config_.growth, config_.backoff,
                         config_.interval);
}

int64_t GradScaler::skipped_steps() const { return skipped_steps_.item<int64_t>(); }

NamedTensors GradScaler::state() const {
  return {{"scaler.scale", scale_},
          {"scaler.growth_tracker", growth_tracker_},
          {"scaler.skipped_steps", skipped_steps_}};
}

}  // namespace gallop::precision
