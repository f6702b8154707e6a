#pragma once

#include <cstdint>
#include <optional>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/noise_scale.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// The time of steps with a batch.
struct BatchSpeed {
  double step_seconds = 0;  ///< The minimum over all steps.
  double busy = 0;          ///< MeasuredCost::busy of that step.
  int64_t splits = 1;       ///< The number of micro-batches into which it had to be split; see
                            ///< TrainStep.
};

/// Runs steps with one batch until warmed up, then for about a second, and on a busy machine for a
/// few more until one is undisturbed. Returns std::nullopt if a stop is requested. Does not restore
/// the weights. If processes share steps, each passes its slice of the batch, and all run the same
/// number of steps.
std::optional<BatchSpeed> time_batch(model::Model& model, optim::Optimizer& optimizer,
                                     const StepConfig& step_config, const data::Batch& batch,
                                     const StopRequest& stop);

struct NoiseConfig {
  int64_t small = 32;     ///< Samples in a small batch.
  int64_t parts = 8;      ///< Small batches in a large one.
  int64_t warm_up = 100;  ///< Training steps before the measurement.
  int64_t steps = 20;     ///< Steps over which the result is averaged.
  double lr_factor = 1;   ///< Multiplies the optimizer's learning rates.
};

/// The objects from which the noise scale is measured. They must outlive it.
struct NoiseParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Samples& samples;
  const StopRequest& stop;
};

/// Trains with large batches at a learning rate that rises to the optimizer's base rate in the
/// warm-up, and compares the gradients of the last steps with those of their small batches. Batch
/// norm takes the statistics of the small batches in both. Returns std::nullopt if a stop is
/// requested or a gradient is not finite. Does not restore the weights. If processes share steps,
/// their number must divide NoiseConfig::small.
std::optional<schedule::NoiseScale> measure_noise(const NoiseParts& parts,
                                                  const NoiseConfig& config,
                                                  const StepConfig& step_config,
                                                  const data::LoaderConfig& loader_config);

}  // namespace gallop::train
