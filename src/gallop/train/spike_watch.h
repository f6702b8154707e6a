#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::train {

/// Options of loss spikes in the `train:` section.
struct SpikeConfig {
  std::string action = "none";
  double threshold = 6;  ///< In standard deviations.
  int64_t window = 100;  ///< In steps.
  int64_t limit = 10;    ///< Spikes in a row, or rewinds in a run, that are tolerated.
};

void visit(config::Visitor& visitor, SpikeConfig& config);

/// Throws UsageError for options that have no effect without an action.
void check(const SpikeConfig& config);

/// Detects a loss more than `threshold` standard deviations above the mean of the preceding ones.
/// Mean m and variance v are exponential moving averages: with d = loss - m and a weight a of 1 /
/// window, or of 1 / n for the first losses, which are thus weighted equally, m += a d and v = (1 -
/// a) (v + a d^2). Spikes and losses that are not finite are excluded from both. The first `window`
/// losses are no spikes. All tensors stay on the device.
class SpikeWatch {
 public:
  SpikeWatch(const SpikeConfig& config, at::Device device);

  /// Processes the loss of a step, fp64 without dimensions. Returns 1 for a spike, else 0.
  at::Tensor note(const at::Tensor& loss);

  /// The live tensors "spikes.mean", "spikes.variance" and "spikes.count".
  NamedTensors state() const;

 private:
  double threshold_, window_;
  at::Tensor mean_, variance_, count_;  // fp64.
};

}  // namespace gallop::train
