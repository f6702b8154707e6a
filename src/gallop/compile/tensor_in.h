#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// A tensor over the storage of `base`, from element `offset` of it on, made without the
/// dispatcher.
at::Tensor tensor_in(const at::Tensor& base, at::ScalarType dtype, at::IntArrayRef sizes,
                     at::IntArrayRef strides, int64_t offset);

}  // namespace gallop::compile
