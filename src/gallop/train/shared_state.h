#pragma once

#include <functional>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/logical_tensor.h"

// Tensors of which each process has a part, from and to whole tensors. All processes call these
// functions together.
namespace gallop::train {

/// Gathers lists of tensors, of which process i gets those of list i one after the other: `take` is
/// called with each, and a process has no more than one of them.
void gather_in_turn(parallel::Collectives& collectives,
                    const std::vector<std::vector<LogicalTensor>>& lists,
                    const std::function<void(const at::Tensor& whole)>& take);

/// Copies whole tensors, which rank 0 has, into the parts of all processes. Those that are on the
/// meta device there are left as they are.
void scatter_from_rank0(parallel::Collectives& collectives, const NamedTensors& whole,
                        const std::vector<LogicalTensor>& tensors);

/// The tensors that every process has as a whole.
NamedTensors replicated(const std::vector<LogicalTensor>& tensors);

}  // namespace gallop::train
