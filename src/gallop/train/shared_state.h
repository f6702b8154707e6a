#pragma once

#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/tensor/logical_tensor.h"

// Tensors of which each process has a part, from and to whole tensors. All processes call these
// functions together.
namespace gallop::train {

/// The tensors of slice `rank` (see slice_of()) as whole ones; the others as they are in `whole`,
/// on the meta device. No process has more than its slice and one tensor in memory.
NamedTensors gather_slices(parallel::Collectives& collectives,
                           const std::vector<LogicalTensor>& tensors, int slices);

/// Copies whole tensors, which rank 0 has, into the parts of all processes. Those that are on the
/// meta device there are left as they are.
void scatter_from_rank0(parallel::Collectives& collectives, const NamedTensors& whole,
                        const std::vector<LogicalTensor>& tensors);

/// The tensors that every process has as a whole.
NamedTensors replicated(const std::vector<LogicalTensor>& tensors);

}  // namespace gallop::train
