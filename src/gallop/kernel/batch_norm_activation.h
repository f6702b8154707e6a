#pragma once

#include <cstdint>

namespace gallop::kernel {

/// What batch norm's kernel applies to its result, as in torch.nn.functional.
enum class BatchNormActivation : uint8_t { kNone, kRelu, kRelu6, kSilu, kHardswish };

}  // namespace gallop::kernel
