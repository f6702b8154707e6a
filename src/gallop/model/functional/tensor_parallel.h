#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/functional/cross_entropy.h"
#include "gallop/tensor/tensor_group.h"

// The ways between replicated, sequence-parallel and tensor-parallel regions, with the gradients of
// Megatron-LM's core/tensor_parallel/mappings.py. The group must outlive the backward pass.
namespace gallop::model::functional {

/// The first elements of the parts of a dimension, and behind them its size.
std::vector<int64_t> part_bounds(int64_t size, int parts);

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

/// As cross_entropy() of logits whose last dimension, of `classes`, is divided among the processes
/// (loss_parallel of PyTorch), with class labels. The processes exchange five numbers for each row
/// in place of its logits. All have the same results.
LossSum vocabulary_parallel_cross_entropy(const at::Tensor& logits, const at::Tensor& target,
                                          const LossOptions& options, int64_t classes,
                                          const TensorGroup& group);

}  // namespace gallop::model::functional
