#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/bodies.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {

/// Numbers of one tensor that one thread takes at a time: 16 KiB an array.
inline constexpr int64_t kUpdateChunk = 4096;

/// The bodies of the update kernels, for at most kUpdateChunk numbers. Each returns the sum of the
/// squares of the gradients, to which fp32 lanes add in an order that depends on the count only.
struct UpdateBodies {
  double (*adamw)(const AdamwTensor& chunk);
  double (*sgd)(const SgdTensor& chunk);
  double (*sum_of_squares)(const ConstArray& chunk);
};

}  // namespace gallop::kernel
