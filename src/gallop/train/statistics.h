#pragma once

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/precision/precision.h"

namespace gallop::train {

struct StatisticsConfig {
  data::LoaderConfig loader;
  uint64_t seed = 1;
  precision::Precision precision = precision::Precision::kFp32;
  at::Device device = at::kCPU;
};

/// Recomputes the statistics of batch norm, buffers that end in "running_mean" and "running_var",
/// for the current weights: their mean over the batches of the first epoch, weighted by their
/// samples. PyTorch's update_bn() weights a smaller last batch like the others. Buffers that no
/// forward pass changes keep their values. Without such buffers nothing is read. False if `stop`
/// was requested before the end; the statistics are then restored. Leaves the model in training
/// mode.
bool recompute_statistics(model::Model& model, const data::Samples& samples,
                          const StatisticsConfig& config, const StopRequest& stop);

}  // namespace gallop::train
