#include "gallop/kernel/cpu/peak.h"

#include "gallop/kernel/cpu/pairs.h"
#include "gallop/kernel/cpu/simd.h"
#include "gallop/kernel/cpu/tiles.h"

namespace gallop::kernel {

namespace {

// Enough that none waits for the one before in the same register, and few enough for all registers.
#if defined(__AVX512F__)
constexpr int kSums = 12;
#else
constexpr int kSums = 6;
#endif

// Read at run time, so that nothing is computed by the compiler.
volatile float one = 1;

double fp32(int64_t repeats) {
  const F32 factor = fill(one);
  F32 sums[kSums];
  // Different numbers, as the compiler would compute equal sums once.
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = fill(one + static_cast<float>(i));
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (F32& sum : sums) sum = fma(factor, factor, sum);
  }
  F32 all = factor;
#pragma GCC unroll 12
  for (const F32& sum : sums) all = max(all, sum);
  one = largest(all) > 0 ? 1 : 0;
  return 2.0 * kLanes * kSums * static_cast<double>(repeats);
}

#if defined(__AMX_BF16__)

constexpr TileSetup kSetup;

double bf16(int64_t repeats) {
  alignas(64) TileSetup before;
  begin_tiles(kSetup, &before);
  asm volatile("" : : "r"(&before) : "memory");  // Which the compiler takes for unchanged.
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  _tile_zero(6);
  _tile_zero(7);
  for (int64_t i = 0; i < repeats; ++i) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  end_tiles(&before);
  constexpr double kFlopsOfOne = 2.0 * 16 * 16 * 32;
  return 4 * kFlopsOfOne * static_cast<double>(repeats);
}

#elif defined(__AVX512BF16__)

double bf16(int64_t repeats) {
  const F32 factor = fill(one);
  const auto pairs = reinterpret_cast<__m512bh>(factor.v);
  __m512 sums[kSums];
#pragma GCC unroll 12
  for (int i = 0; i < kSums; ++i) sums[i] = fill(one + static_cast<float>(i)).v;
  for (int64_t i = 0; i < repeats; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, pairs, pairs);
  }
  F32 all = factor;
#pragma GCC unroll 12
  for (const __m512& sum : sums) all = max(all, F32{sum});
  one = largest(all) > 0 ? 1 : 0;
  return 2.0 * 2 * 16 * kSums * static_cast<double>(repeats);
}

#else

constexpr double (*bf16)(int64_t) = nullptr;

#endif

}  // namespace

template <>
PeakKernels make_kernels<PeakKernels, kIsa>() {
  return {.fp32 = fp32, .bf16 = bf16};
}

}  // namespace gallop::kernel
