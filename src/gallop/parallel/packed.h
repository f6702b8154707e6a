#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// The parameters that require a gradient, in their order.
std::vector<at::Tensor> trained(const NamedTensors& parameters);

/// The total number of elements of the tensors.
int64_t count_numbers(const std::vector<at::Tensor>& tensors);
/// The type in which means of these tensors over processes are computed: fp64 if one of them has
/// integers or fp64 numbers, otherwise fp32.
at::ScalarType type_of_means(const std::vector<at::Tensor>& tensors);

/// Adjacent views of `packed`, from its element `offset` on, with the sizes and strides of each of
/// the tensors.
std::vector<at::Tensor> places_in(const at::Tensor& packed, int64_t offset,
                                  const std::vector<at::Tensor>& tensors);

/// Copies each tensor to the one at the same index in the other list.
void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);

/// The elements of a dense tensor in memory order: a view of one dimension, without autograd.
at::Tensor in_memory_order(const at::Tensor& dense);

/// Starts and ends all-reduces of the tensors, in the group of the current scope, packed into
/// pieces of about 25 MiB.
void all_reduce_packed(const std::vector<at::Tensor>& tensors);
/// As all_reduce_packed(), but the tensors become those of rank 0 of the group's `processes`.
void broadcast_packed(const std::vector<at::Tensor>& tensors, int processes);

}  // namespace gallop::parallel
