#pragma once

// Sums of products of bf16 pairs in registers, for machines that have such instructions but no AMX.

#if defined(__AVX512BF16__)

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

/// The right operand of a GEMM: rows 2i and 2i + 1 are interleaved.
struct PairedColumns {
  const Bf16* data;
  int64_t stride;  ///< From one pair of rows to the next, in elements.
  int64_t right;   ///< From 16 columns to the next 16.
};

/// kRows rows and 16 kVectors columns of c, in registers: with 8 rows and 2 vectors, operands are
/// loaded rarely enough to issue two of the instructions per cycle.
template <int64_t kRows, int64_t kVectors>
struct PairSums {
  __m512 at[kRows][kVectors];

  PairSums() {
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) at[r][v] = _mm512_setzero_ps();
    }
  }

  /// Adds 2 * pairs products to each sum; a's rows are a_stride elements apart.
  void add(const Bf16* a, int64_t a_stride, const PairedColumns& b, int64_t pairs) {
    for (int64_t l = 0; l < pairs; ++l) {
      __m512bh right[kVectors];
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        right[v] =
            reinterpret_cast<__m512bh>(_mm512_loadu_si512(b.data + l * b.stride + v * b.right));
      }
#pragma GCC unroll 16
      for (int64_t r = 0; r < kRows; ++r) {
        int32_t pair = 0;
        __builtin_memcpy(&pair, a + r * a_stride + 2 * l, sizeof(pair));
        const auto left = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 4
        for (int64_t v = 0; v < kVectors; ++v) {
          at[r][v] = _mm512_dpbf16_ps(at[r][v], left, right[v]);
        }
      }
    }
  }

  /// Stores to c, where vectors are `right` elements apart; adds if `add`.
  void put(float* c, int64_t stride, int64_t right, bool add) const {
#pragma GCC unroll 16
    for (int64_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (int64_t v = 0; v < kVectors; ++v) {
        float* const to = c + r * stride + v * right;
        // Adds the old value last: sums of partial sums are more accurate.
        store(to, F32{add ? _mm512_add_ps(_mm512_loadu_ps(to), at[r][v]) : at[r][v]});
      }
    }
  }
};

}  // namespace
}  // namespace gallop::kernel

#endif
