#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Sizes of the products below are multiples of this: what tiles and vectors come to.
template <typename Number>
inline constexpr int64_t kGemmPad = 16;
template <>
inline constexpr int64_t kGemmPad<Bf16> = 32;

/// Small matrix products within one thread, from and to its cache.
template <typename Number>
struct GemmKernels {
  static constexpr int64_t kStateBytes = 64;

  /// To be called before and after some products: sets up what the thread's core needs for them,
  /// and puts back what was set up before, on which others rely. `state` has kStateBytes, aligned
  /// so.
  void (*begin)(void* state);
  void (*end)(const void* state);
  /// c[m, n] (+)= a[m, k] b[k, n]. In bf16 rows 2i and 2i + 1 of b are woven into one, and m and n
  /// may be multiples of 16 as well.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride,
                   const Number* b, int64_t b_stride, float* c, int64_t c_stride, bool add);
  /// c += a b with a in blocks of kGemmPad columns, [k / kGemmPad, m, kGemmPad].
  void (*multiply_blocks)(int64_t m, int64_t n, int64_t k, const Number* a, const Number* b,
                          int64_t b_stride, float* c, int64_t c_stride);
};

/// c[m, n] (+)= a[k, m]^T b[k, n] in fp32, of sizes as above: nothing is transposed in memory.
struct ColumnProductKernels {
  void (*multiply)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                   const float* b, int64_t b_stride, float* c, int64_t c_stride, bool add);
};

}  // namespace gallop::kernel
