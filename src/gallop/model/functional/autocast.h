#pragma once

#include <ATen/core/Tensor.h>

// Only for sources of functional/.
namespace gallop::model::functional {

/// The dtype in which a GEMM computes with x: autocast's if enabled for x's device, otherwise x's
/// own.
at::ScalarType product_format(const at::Tensor& x);

/// Whether CPU autocast to bf16 is enabled.
bool is_bf16_autocast();

}  // namespace gallop::model::functional
