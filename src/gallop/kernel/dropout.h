#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::kernel {

/// The random key of one dropout.
struct DropoutKey {
  at::Tensor seed_and_step;  ///< int64 [2] on the tensor's device: read at every use.
  int64_t call = 0;          ///< Distinguishes the dropouts of one step; below 2^32.
  /// If defined, replaces p: fp32, 0-dim, on that device; also read at every use.
  at::Tensor share{};
};

/// A tensor that is a part of a whole one: both in the order of memory are `rows` rows. Those of
/// the whole have `columns` elements, of which this part has some ranges, one after the other. The
/// default is a whole tensor.
struct DropoutPart {
  struct Range {
    int64_t begin = 0, size = 0;
  };
  int64_t rows = 0, columns = 0;
  std::vector<Range> ranges{};
  bool is_whole() const { return rows == 0; }
};

/// Whether dropout() supports it: fp32 or bf16, on a GPU that has our kernels also fp16,
/// contiguous, with less than 2^35 elements.
bool takes_dropout(const at::Tensor& x);

/// A dropout probability in fixed point: an element is dropped if 16 random bits are less than
/// `threshold`, an integer, and the others are multiplied by `scale`. Both are computed in fp64.
struct DropoutShare {
  double threshold = 0, scale = 1;
};
DropoutShare dropout_share(double p);

/// Sets a fraction p in [0, 1) of x to 0 and multiplies the rest by 1 / (1 - p) (Srivastava et al.,
/// "Dropout", JMLR 2014). p is rounded to a multiple of 2^-16. The mask depends on the key and
/// the position alone: Philox of Purpose::kDropout (base/philox.h) with the call as epoch. The
/// gradient of x is the same function of that of y, so that no mask is saved. Parts of a tensor,
/// which may be on the CPU only, get the mask of the whole one.
at::Tensor dropout(const at::Tensor& x, double p, const DropoutKey& key,
                   const DropoutPart& part = {});

}  // namespace gallop::kernel
