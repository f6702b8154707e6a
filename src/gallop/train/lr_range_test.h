#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/lr_suggestion.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

struct LrRangeTestConfig {
  double min = 1e-7, max = 10;  ///< Both above 0.
  int64_t rates = 100;          ///< Number of rates, in increasing order.
  bool linear = false;          ///< Rates increase linearly instead of exponentially.
  double memory = 0.98;         ///< Decay of the moving average of the loss.
  double divergence = 4;        ///< Ends when the smoothed loss exceeds this multiple of its
                                ///< minimum.
  /// If positive, each rate is trained for this many steps from the initial weights, on the same
  /// samples, and its loss is that of the following samples. If 0, each step of a single training
  /// has its own rate.
  int64_t steps_each = 0;
};

/// The objects that the test trains. They must outlive it.
struct LrRangeTestParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Samples& samples;
  const StopRequest& stop;
};

struct LrRangeTest {
  std::vector<schedule::RangePoint> points;
  bool diverged = false;  ///< Whether it ended before the last rate.
  bool stopped = false;   ///< Whether a stop was requested.
};

/// The learning rate range test (Smith, "Cyclical learning rates for training neural networks",
/// WACV 2017): trains at increasing rates, and restores model and optimizer. `on_point` is called
/// with each point; may be empty.
LrRangeTest test_lr_range(const LrRangeTestParts& parts, const LrRangeTestConfig& config,
                          const StepConfig& step_config, const data::LoaderConfig& loader_config,
                          const std::function<void(const schedule::RangePoint&)>& on_point = {});

}  // namespace gallop::train
