#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// The parameters that are trained, in their order.
std::vector<at::Tensor> trained(const NamedTensors& parameters);

/// Numbers that all the tensors have together.
int64_t count_numbers(const std::vector<at::Tensor>& tensors);

/// Views of `packed` from its number `offset` on, side by side, with the sizes and strides of each
/// of the tensors.
std::vector<at::Tensor> places_in(const at::Tensor& packed, int64_t offset,
                                  const std::vector<at::Tensor>& tensors);

/// Copies each tensor onto the one at its place in the other list.
void copy_all(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to);

}  // namespace gallop::parallel
