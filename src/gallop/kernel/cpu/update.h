#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {

/// Numbers of one tensor that one thread takes at a time: 16 KiB an array.
inline constexpr int64_t kUpdateChunk = 4096;

/// Sums of squares for a trust ratio.
struct MeasuredSums {
  double parameter = 0, measured = 0;
};

/// One rule's passes over at most kUpdateChunk numbers.
struct UpdateKernelFunction {
  /// Returns the sum of the squares of the gradients, to which fp32 lanes add in an order that
  /// depends on the count only. The trust ratio, where there is one, stands behind the factors.
  double (*update)(const UpdateTensor& chunk);
  /// The same with states in 8 bits; null for rules that cannot.
  double (*update_8_bits)(const UpdateTensor& chunk);
  MeasuredSums (*measure)(const UpdateTensor& chunk);  ///< Null without a trust ratio.
};

struct UpdateKernels {
  UpdateKernelFunction rules[UpdateRules::kCount];  ///< In the order of UpdateRules.
  double (*sum_of_squares)(const ConstArray& chunk);
};

}  // namespace gallop::kernel
