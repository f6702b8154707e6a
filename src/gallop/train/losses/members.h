#pragma once

#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// Loss::sum_and_correct(). If the output has several predictions of each sample
/// (Output::members), the sum is the mean of those of the members, and correct is that of the mean
/// of their probabilities.
Losses losses_of(const Loss& loss, const model::Output& output, const NamedTensors& batch,
                 const Loss::Request& request = {});

}  // namespace gallop::train
