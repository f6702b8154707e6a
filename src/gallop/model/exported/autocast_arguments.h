#pragma once

#include <ATen/core/stack.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// Adjusts arguments of an operator that were right in fp32 to activations that autocast, or
/// weights stored in bf16, have made bf16 or fp16:
/// - the constant of masked_fill beyond the range of the format becomes the format's limit,
/// - what is written into a tensor (index_put, index_add, scatter, ...) takes the tensor's format;
///   out of place, both take the wider one, as in CUDA's autocast.
void adjust_to_autocast(const Node& node, torch::jit::Stack& stack);

}  // namespace gallop::model::exported
