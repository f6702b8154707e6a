#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

inline bool is_bf16(const at::Tensor& tensor) { return tensor.scalar_type() == at::kBFloat16; }

}  // namespace gallop::kernel
