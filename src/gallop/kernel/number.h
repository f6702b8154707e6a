#pragma once

#include <cstdint>

namespace gallop::kernel {

/// A bfloat16 as it lies in memory: the upper half of an fp32.
struct Bf16 {
  uint16_t bits;
};

}  // namespace gallop::kernel
