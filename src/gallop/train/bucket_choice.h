#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/strategy.h"
#include "gallop/train/measured_choice.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// The steps that are timed to choose a bucket size.
struct BucketTrial {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Batch& batch;  ///< This process's slice of it.
  StepConfig step;           ///< Except for the strategy.
  /// Makes the strategy with a bucket size, such as "4 MiB". One exists at a time.
  std::function<std::unique_ptr<parallel::Strategy>(const std::string& size)> make_strategy;
  double uses = std::numeric_limits<double>::infinity();  ///< Steps for which the choice is made.
};

/// Times steps with buckets of 25, 1, 4 and 100 MiB, skipping sizes that divide the gradients in
/// the same way as an earlier one, and chooses as choose_by_measuring() by the slowest process; the
/// candidates' names are the sizes. If only one way remains, nothing is timed. All processes must
/// call it and get the same result. Restores weights, statistics and optimizer state.
MeasuredChoice choose_bucket(const BucketTrial& trial, parallel::Collectives& collectives);

/// "4 MiB (measured 25 MiB 14.1 ms, 1 MiB 13.5 ms, 4 MiB 12.2 ms)"
std::string describe_bucket(const MeasuredChoice& choice);

}  // namespace gallop::train
