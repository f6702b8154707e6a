#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// Names of the parameters in the order in which the backward pass of a training step gives them
/// their gradients, found by one pass over these rows. Statistics and gradients are as before
/// afterwards; hooks that parameters have (parallel::GradientHooks) are gone.
std::vector<std::string> gradient_order(model::Model& model, const NamedTensors& batch,
                                        precision::Precision precision, const Loss& loss);

}  // namespace gallop::train
