#pragma once

#include <cstdint>
#include <optional>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/noise_scale.h"
#include "gallop/train/step.h"

namespace gallop::train {

/// How fast steps are with a batch.
struct BatchSpeed {
  double step_seconds = 0;  ///< Least of all steps.
  double busy = 0;          ///< MeasuredCost::busy of that step.
  int64_t splits = 1;       ///< Into how many micro-batches it had to be split; see TrainStep.
};

/// Takes steps with one batch until they are what all further ones are, then for about a second,
/// and on a busy machine for a few more until one is found that nothing has disturbed.
/// Nothing where a stop is asked for. Weights are not as before afterwards. Of processes that share
/// steps each gives its part of the batch, and all take as many steps.
std::optional<BatchSpeed> time_batch(model::Model& model, optim::Optimizer& optimizer,
                                     const StepConfig& step_config, const data::Batch& batch,
                                     const StopRequest& stop);

struct NoiseConfig {
  int64_t small = 32;     ///< Samples in a small batch.
  int64_t parts = 8;      ///< Small batches in a big one.
  int64_t warm_up = 100;  ///< Steps that are trained before.
  int64_t steps = 20;     ///< Steps over which is averaged.
  double lr_factor = 1;   ///< Of the optimizer's learning rates.
};

/// What the noise is measured of. Everything outlives it.
struct NoiseParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Samples& samples;
  const StopRequest& stop;
};

/// Trains with big batches at a rate that rises to the optimizer's base rate in the warm-up, and
/// measures the gradients of the last steps and of their parts. Batch norm sees the parts in both.
/// Nothing where a stop is asked for or a gradient is not finite. Weights are not as before
/// afterwards. Where processes share steps their number divides NoiseConfig::small.
std::optional<schedule::NoiseScale> measure_noise(const NoiseParts& parts,
                                                  const NoiseConfig& config,
                                                  const StepConfig& step_config,
                                                  const data::LoaderConfig& loader_config);

}  // namespace gallop::train
