#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/strategy.h"
#include "gallop/train/step.h"

namespace gallop::train {

/// The steps that are timed to choose a size of buckets.
struct BucketTrial {
  model::Model& model;
  optim::Optimizer& optimizer;
  const data::Batch& batch;  ///< This process's part of it.
  StepConfig step;           ///< But for the strategy.
  /// The strategy with buckets of such a size, "4 MiB". One lives at a time.
  std::function<std::unique_ptr<parallel::Strategy>(const std::string& size)> make_strategy;
};

/// A size and how long a step takes with it: the median of the slowest process.
struct BucketTiming {
  std::string size;
  double milliseconds = 0;
};

/// Times steps with buckets of 25, 1, 4 and 100 MiB, of sizes that divide the gradients in the same
/// way only the first. With one way there is nothing to choose, and nothing is timed. All processes
/// call it and get the same. Weights, statistics and states of the optimizer are as before
/// afterwards.
std::vector<BucketTiming> time_buckets(const BucketTrial& trial,
                                       parallel::Collectives& collectives);

/// The fastest, where it is at least 5 % faster than the first.
std::string pick_bucket(const std::vector<BucketTiming>& timings);

/// "4 MiB (measured 25 MiB 14.1 ms, 1 MiB 13.5 ms, 4 MiB 12.2 ms)"
std::string describe_choice(const std::vector<BucketTiming>& timings);

}  // namespace gallop::train
