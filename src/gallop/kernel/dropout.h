#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// What decides the random numbers of one dropout.
struct DropoutKey {
  at::Tensor seed_and_step;  ///< int64 [2] on the numbers' device: read again whenever it is used.
  int64_t call = 0;          ///< Tells the dropouts of one step apart; below 2^32.
  /// If defined, stands for p: fp32, no dimensions, on that device; likewise read again.
  at::Tensor share{};
};

/// Whether dropout() takes it: fp32 or bf16, on a GPU that has our kernels also fp16, contiguous,
/// of less than 2^35 numbers.
bool takes_dropout(const at::Tensor& x);

/// A share as it is drawn: 16 random bits less than `threshold` drop a number, and `scale` makes up
/// for it. Whole numbers, and what fp64 makes of them.
struct DropoutShare {
  double threshold = 0, scale = 1;
};
DropoutShare dropout_share(double p);

/// Sets a share p in [0, 1) of x to 0 and multiplies the rest by 1 / (1 - p) (Srivastava et al.,
/// "Dropout", JMLR 2014). p is rounded to a multiple of 2^-16. Which ones depends on the key and
/// the place alone: Philox of Purpose::kDropout (base/philox.h) with the call for an epoch. The
/// gradient of x is the same function of that of y, so nothing is kept.
at::Tensor dropout(const at::Tensor& x, double p, const DropoutKey& key);

}  // namespace gallop::kernel
