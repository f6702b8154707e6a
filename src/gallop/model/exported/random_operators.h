#pragma once

#include <ATen/core/stack.h>
#include <c10/core/Device.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// Whether run_with_own_numbers() takes the operator on such a device.
bool has_own_numbers(const Node& node, c10::Device device);

/// Runs an operator that draws random numbers (dropout of elements, channels, samples and attention
/// weights) with those of functional::dropout(): they depend on the seed, the step and the slice of
/// the batch, so that neither the number of processes nor a block that is recomputed changes them.
/// Replaces the arguments on the stack by the result. Returns false, and changes nothing, for a
/// node that has_own_numbers() rejects.
bool run_with_own_numbers(const Node& node, torch::jit::Stack& stack);

}  // namespace gallop::model::exported
