#pragma once

#include <cstdint>

namespace gallop::kernel {

/// A bfloat16 as it lies in memory: the upper half of an fp32.
struct Bf16 {
  uint16_t bits;
};

/// Numbers of a vector in the CPU kernels, in as many registers as the machine needs for them: so
/// sums are taken in one order everywhere.
inline constexpr int64_t kLanes = 16;

}  // namespace gallop::kernel
