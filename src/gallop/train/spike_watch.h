#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// Of the `train:` section: what a loss does that jumps.
struct SpikeConfig {
  std::string action = "none";
  double threshold = 6;  ///< In standard deviations.
  int64_t window = 100;  ///< In steps.
  int64_t limit = 10;    ///< Spikes in a row, or rewinds in a run, that do not end it.
};

void visit(config::Visitor& visitor, SpikeConfig& config);

/// Throws UsageError for options that say nothing without an action.
void check(const SpikeConfig& config);

/// Tells a loss that lies more than `threshold` standard deviations above the mean of those before.
/// Mean m and variance v are exponential: with d = loss - m and a share a of 1 / window, or of
/// 1 / n for the first losses, which so weigh alike, m += a d and v = (1 - a) (v + a d^2). Spikes
/// and what is not finite stay out of both. The first `window` losses are no spikes. All of it
/// stays on the device.
class SpikeWatch {
 public:
  SpikeWatch(const SpikeConfig& config, at::Device device);

  /// Takes the loss of a step, fp64 without dimensions. Returns 1 where it is a spike, else 0.
  at::Tensor note(const at::Tensor& loss);

  /// The live tensors "spikes.mean", "spikes.variance" and "spikes.count".
  NamedTensors state() const;

 private:
  double threshold_, window_;
  at::Tensor mean_, variance_, count_;  // fp64.
};

}  // namespace gallop::train
