#pragma once

#include <cstddef>
#include <vector>

#include "gallop/train/step.h"

namespace gallop::train {

// The arguments and results of a training step as a function of tensors. Where it is shared, the
// last two arguments are what dropout draws from in this process, for each shard, and what it adds
// to SharedSum, from kTargets on.
enum Argument : size_t { kInput, kTarget, kLr, kLossWeight, kSeedAndStep, kScheduled };
enum Result : size_t { kLossSum, kTop1, kNorm, kSpike, kSharedSums, kTargetCount };
// Results in one tensor, for one copy to the host. Behind these: the count of targets where it is
// computed on the device; right guesses where they are counted, and where the step is shared all
// SharedSums instead of them.
enum Number : size_t { kLossNumber, kNormNumber, kSpikeNumber, kFurtherNumbers };
// Sums over processes: right guesses, targets that were not broken and all targets, how many wish
// what, how many could not do their part, and the loss of each shard.
enum SharedSum : size_t {
  kSharedTop1,
  kTargets,
  kAllTargets,
  kFirstRequest,
  kMissing = kFirstRequest + kStepRequests,
  kFirstLoss
};

// Whether counts follow from sizes, so that a loss divides by a number that the host knows.
bool counts_by_size(const StepConfig& config, const std::vector<LossTerm>& terms);
// Throws UsageError where a step cannot be done with the config's loss.
void check_loss(const StepConfig& config);

}  // namespace gallop::train
