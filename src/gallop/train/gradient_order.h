#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// Returns the names of the parameters in the order in which the backward pass of a training step
/// produces their gradients, found by one pass over this batch. Restores the statistics, drops the
/// gradients, and removes the hooks that parameters have (parallel::GradientHooks).
std::vector<std::string> gradient_order(model::Model& model, const NamedTensors& batch,
                                        precision::Precision precision, const Loss& loss);

}  // namespace gallop::train
