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

/// Takes the statistics of batch norm, buffers that end in "running_mean" and "running_var", again
/// for the weights that the model has: their mean over the samples as the first epoch shows them,
/// as PyTorch's update_bn() does. Without such buffers nothing is read. False where `stop` was
/// requested before the end; the statistics are then as before. Leaves the model in training mode.
bool recompute_statistics(model::Model& model, const data::Samples& samples,
                          const StatisticsConfig& config, const StopRequest& stop);

}  // namespace gallop::train
