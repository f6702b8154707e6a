#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::compile {

/// A tensor over the storage of `base`, from element `offset` of it on, made without the
/// dispatcher; with `is_conj` a lazy conjugate.
at::Tensor tensor_in(const at::Tensor& base, at::ScalarType dtype, at::IntArrayRef sizes,
                     at::IntArrayRef strides, int64_t offset, bool is_conj = false);

}  // namespace gallop::compile
