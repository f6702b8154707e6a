#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/dropout.h"
#include "gallop/tensor/tensor_group.h"

// The ways between replicated, sequence-parallel and tensor-parallel regions, with the gradients of
// Megatron-LM's core/tensor_parallel/mappings.py. The group must outlive the backward pass.
namespace gallop::model::functional {

/// The first elements of the parts of a dimension, and behind them its size.
std::vector<int64_t> part_bounds(int64_t size, int parts);

/// This process's part of a dimension.
struct PartRange {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};
PartRange part_range(int64_t size, const TensorGroup& group);

/// Where the elements of `x`, which has these ranges of a dimension of `size` elements, lie in the
/// whole tensor, so that they draw the random numbers that they would draw in one process.
kernel::DropoutPart dropout_part(const at::Tensor& x, int64_t dim, int64_t size,
                                 const std::vector<PartRange>& ranges);

/// Copies; the gradient is summed over the processes.
at::Tensor copy_to_tensor_parallel_region(const at::Tensor& x, const TensorGroup& group);
/// The sum over the processes; the gradient is copied.
at::Tensor reduce_from_tensor_parallel_region(const at::Tensor& x, const TensorGroup& group);
/// Concatenates the parts of a dimension of `size` elements. `sums_gradient`: each process uses the
/// result for a part of the layer, so that gradients are summed and scattered; otherwise all use it
/// alike, and each keeps its part of the gradient.
at::Tensor gather_parts(const at::Tensor& x, int64_t dim, int64_t size, bool sums_gradient,
                        const TensorGroup& group);
/// The sum over the processes, of which each gets its part of a dimension; the gradient is
/// gathered.
at::Tensor reduce_scatter(const at::Tensor& x, int64_t dim, const TensorGroup& group);
/// This process's part of what all processes have alike; the gradient is gathered.
at::Tensor scatter_parts(const at::Tensor& x, int64_t dim, const TensorGroup& group);

/// From a part along one dimension, which has `size` elements in all processes, to a part along
/// another, as DTensor's redistribute() from Shard(from) to Shard(to).
at::Tensor redistribute(const at::Tensor& x, int64_t from, int64_t size, int64_t to,
                        const TensorGroup& group);

}  // namespace gallop::model::functional
