#pragma once

#include "gallop/kernel/attention.h"

namespace gallop::model::functional {

/// kernel::attention() with its gradient, [B, T, H, D]. Takes what kernel::takes_attention() says.
at::Tensor attention(const at::Tensor& qkv_BT3HD, const kernel::AttentionOptions& options);

}  // namespace gallop::model::functional
