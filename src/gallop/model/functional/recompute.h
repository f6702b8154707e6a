#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// A part of a network as a function of tensors; parameters it may read besides.
using Part = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs)>;

/// What the part makes of the inputs. For the backward pass nothing is kept but the inputs; it
/// computes the part once more (Chen et al., "Training deep nets with sublinear memory cost",
/// 2016), with the same random numbers and formats, and without a second effect on batch norm's
/// statistics. Without gradients it is the part. `parameters`: those that the part reads. All
/// tensors are defined. Throws UsageError where a compiler records a part that draws random numbers
/// from LibTorch's generators, which a compiled step could not draw once more.
std::vector<at::Tensor> recompute(Part part, const std::vector<at::Tensor>& inputs,
                                  const std::vector<at::Tensor>& parameters);

/// Whether this thread computes a part once more.
bool is_recomputing();

}  // namespace gallop::model::functional
