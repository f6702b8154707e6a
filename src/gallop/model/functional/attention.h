#pragma once

#include "gallop/kernel/attention.h"

namespace gallop::model::functional {

/// kernel::attention() with its gradient, [B, T, H, D]. Requires kernel::takes_attention().
at::Tensor attention(const at::Tensor& qkv_BT3HD, const kernel::AttentionOptions& options);

}  // namespace gallop::model::functional
