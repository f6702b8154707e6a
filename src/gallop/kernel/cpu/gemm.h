#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// Sizes of the GEMMs below are multiples of this, which is set by tiles and vectors.
template <typename Number>
inline constexpr int64_t kGemmPad = 16;
template <>
inline constexpr int64_t kGemmPad<Bf16> = 32;

/// Small GEMMs within one thread, on matrices in its cache.
template <typename Number>
struct GemmKernels {
  static constexpr int64_t kStateBytes = 64;

  /// Call these before and after a series of GEMMs: they set up the state of the thread's core,
  /// and restore the previous one, on which other code relies. `state` has kStateBytes, aligned
  /// to as many.
  void (*begin)(void* state);
  void (*end)(const void* state);
  /// c[m, n] (+)= a[m, k] b[k, n]. In bf16, rows 2i and 2i + 1 of b are interleaved (VNNI-packed),
  /// and m and n may be multiples of 16 as well.
  void (*multiply)(int64_t m, int64_t n, int64_t k, const Number* a, int64_t a_stride,
                   const Number* b, int64_t b_stride, float* c, int64_t c_stride, bool add);
  /// c += a b with a in blocks of kGemmPad columns, [k / kGemmPad, m, kGemmPad].
  void (*multiply_blocks)(int64_t m, int64_t n, int64_t k, const Number* a, const Number* b,
                          int64_t b_stride, float* c, int64_t c_stride);
};

/// c[m, n] (+)= a[k, m]^T b[k, n] in fp32, with sizes as above, without transposing in memory.
struct ColumnProductKernels {
  void (*multiply)(int64_t m, int64_t n, int64_t k, const float* a, int64_t a_stride,
                   const float* b, int64_t b_stride, float* c, int64_t c_stride, bool add);
};

}  // namespace gallop::kernel
