#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// A part of a network as a function of tensors; it may also read parameters.
using Part = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// Computes the part with activation checkpointing (Chen et al., "Training deep nets with sublinear
/// memory cost", 2016): only the inputs are saved, and the backward pass computes the part again
/// with the same random numbers and autocast, without updating batch norm's statistics again.
/// Without gradients it just calls the part. `parameters` are those that the part reads; a tied one
/// may be among them several times. All tensors must be defined. Throws UsageError if a compiler
/// records a part that draws random numbers from LibTorch's generators, which a compiled step
/// cannot replay.
std::vector<at::Tensor> recompute(Part part, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters);

/// Whether this thread is recomputing a part in the backward pass.
bool is_recomputing();

}  // namespace gallop::model::functional
