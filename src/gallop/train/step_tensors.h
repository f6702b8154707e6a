#pragma once

#include <cstddef>

namespace gallop::train {

// The arguments and results of a training step as a function of tensors.
enum Argument : size_t { kInput, kTarget, kLr, kLossWeight, kSeedAndStep, kVaried };
enum Result : size_t { kLossSum, kTop1, kNorm, kSpike };
// Results in one tensor, for one copy to the host; guesses only where they are counted.
enum Number : size_t { kLossNumber, kNormNumber, kSpikeNumber, kTop1Number };

}  // namespace gallop::train
