#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// How two tensors differ in format, sizes, strides or any bit; empty where they do not. A NaN is
/// equal to another.
std::string difference_of_bits(const at::Tensor& got, const at::Tensor& wanted);

/// Contiguous copies without a gradient.
std::vector<at::Tensor> copies_of(const std::vector<at::Tensor>& tensors);

/// For each tensor the first of all that lies in the same memory, and where in it.
std::vector<std::pair<size_t, int64_t>> sharing_of(const std::vector<at::Tensor>& tensors);

}  // namespace gallop::compile
