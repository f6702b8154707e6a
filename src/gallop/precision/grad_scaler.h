#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::precision {

struct GradScalerConfig {
  double initial = 65536;
  double growth = 2;     ///< Factor after `interval` finite steps in a row.
  double backoff = 0.5;  ///< Factor after a step with infinities or NaNs.
  int64_t interval = 2000;

  bool operator==(const GradScalerConfig&) const = default;
};

void visit(config::Visitor& visitor, GradScalerConfig& config);

/// Gradient scaling for fp16: multiplies the loss so that small gradients do not underflow, and
/// adapts the scale to the largest one that does not overflow (Micikevicius et al., "Mixed
/// precision training", ICLR 2018). All state stays on the device, so that a step never waits for
/// it:
///
///     (loss * scaler.scale()).backward();
///     scaler.check(gradient_norm(gradients));
///     optimizer.step(lr, scaler.scale(), scaler.found_inf());
///     scaler.update();
class GradScaler {
 public:
  /// Throws UsageError unless growth > 1, 0 < backoff < 1, interval >= 1 and initial > 0.
  GradScaler(const GradScalerConfig& config, at::Device device);

  /// The factor of the loss, and of the gradients until the optimizer divides by it: a scalar fp32
  /// tensor.
  const at::Tensor& scale() const { return scale_; }
  /// 1 if check() found a non-finite norm, otherwise 0: a scalar fp32 tensor.
  const at::Tensor& found_inf() const { return found_inf_; }

  /// Checks whether the norm of the scaled gradients is finite. All ranks must pass the same norm.
  void check(const at::Tensor& scaled_norm);
  /// Grows the scale or backs off after a step, and counts the step if it was skipped.
  void update();

  /// The number of steps skipped since the start of the run. Synchronizes with the GPU.
  int64_t skipped_steps() const;

  /// The live tensors "scaler.scale", "scaler.growth_tracker" and "scaler.skipped_steps"; copying
  /// into them restores the state.
  NamedTensors state() const;

 private:
  GradScalerConfig config_;
  at::Tensor scale_;
  at::Tensor found_inf_;
  at::Tensor growth_tracker_;  // Finite steps in a row, int32.
  at::Tensor skipped_steps_;   // int64.
};

}  // namespace gallop::precision
