#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {

/// Elements of one tensor that one thread processes at a time: 16 KiB per array.
inline constexpr int64_t kUpdateChunk = 4096;

/// Sums of squares for a trust ratio.
struct MeasuredSums {
  double parameter = 0, measured = 0;
};

/// The passes of one rule over at most kUpdateChunk elements.
struct UpdateKernelFunction {
  /// Returns the sum of squares of the gradients, accumulated in fp32 lanes in an order that
  /// depends on the count only. The trust ratio, if the rule has one, follows the factors.
  double (*update)(const UpdateTensor& chunk);
  /// The same with 8-bit states; null for rules that do not support them.
  double (*update_8_bits)(const UpdateTensor& chunk);
  MeasuredSums (*measure)(const UpdateTensor& chunk);  ///< Null without a trust ratio.
};

struct UpdateKernels {
  UpdateKernelFunction rules[UpdateRules::kCount];  ///< In the order of UpdateRules.
  double (*sum_of_squares)(const ConstArray& chunk);
};

}  // namespace gallop::kernel
