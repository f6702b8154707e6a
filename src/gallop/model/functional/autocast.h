#pragma once

#include <ATen/core/Tensor.h>

// Only for sources of functional/.
namespace gallop::model::functional {

/// The format in which a product of matrices takes x: autocast's where that is on for x's device,
/// else x's own.
at::ScalarType product_format(const at::Tensor& x);

/// Whether the CPU's autocast is on, to bf16.
bool is_bf16_autocast();

}  // namespace gallop::model::functional
