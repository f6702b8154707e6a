#pragma once

#include <functional>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/logical_tensor.h"

// Tensors of which each process has a part, from and to whole tensors. All processes call these
// functions together.
namespace gallop::train {

/// Gathers the tensors of list i in process i, one at a time: `take` is called with each whole
/// tensor. A process holds at most one gathered tensor at any time.
void gather_in_turn(parallel::Collectives& collectives,
                    const std::vector<std::vector<LogicalTensor>>& lists,
                    const std::function<void(const at::Tensor& whole)>& take);

/// Copies whole tensors of rank 0 into the parts of all processes. Tensors that are missing
/// or on the meta device in rank 0 are not changed.
void scatter_from_rank0(parallel::Collectives& collectives, const NamedTensors& whole,
                        const std::vector<LogicalTensor>& tensors);

/// The tensors that every process has as a whole.
NamedTensors replicated(const std::vector<LogicalTensor>& tensors);

}  // namespace gallop::train
