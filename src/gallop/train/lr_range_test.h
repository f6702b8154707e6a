#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/lr_suggestion.h"
#include "gallop/train/step.h"

namespace gallop::train {

struct LrRangeTestConfig {
  double min = 1e-7, max = 10;  ///< Both above 0.
  int64_t rates = 100;          ///< That are tried, from the lowest up.
  bool linear = false;          ///< Rates grow by a sum, not by a factor.
  double memory = 0.98;         ///< Share of the past in the smoothed loss.
  double divergence = 4;        ///< Ends where the smoothed loss is so many times its lowest.
  /// If above 0, every rate trains so many steps, with the same samples, from the weights that the
  /// model has; its loss is that of the samples that come next. Else each step of one training has
  /// its rate.
  int64_t steps_each = 0;
};

/// What the test trains. Everything outlives it.
struct LrRangeTestParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Samples& samples;
  const StopRequest& stop;
};

struct LrRangeTest {
  std::vector<schedule::RangePoint> points;
  bool diverged = false;  ///< It ended before the last rate.
  bool stopped = false;   ///< By request.
};

/// Trains at rising rates (Smith, "Cyclical learning rates for training neural networks", WACV
/// 2017) and leaves model and optimizer as they were. `told` is called with each point; may be
/// empty.
LrRangeTest test_lr_range(const LrRangeTestParts& parts, const LrRangeTestConfig& config,
                          const StepConfig& step_config, const data::LoaderConfig& loader_config,
                          const std::function<void(const schedule::RangePoint&)>& told = {});

}  // namespace gallop::train
