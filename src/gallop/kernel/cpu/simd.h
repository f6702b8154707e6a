#pragma once

// Vectors for the sources of this folder, each of which is compiled once for every Isa. Nothing
// else may include this file, and those sources call no inline function from elsewhere, of the
// standard library neither: the linker keeps one copy of each, compiled for a machine that need not
// be this.

// F32 is a vector of kLanes numbers, Mask one of as many bits. Every Isa has all of these:
//   fill(x), load(p), store(p, a)      of fp32 and bf16 arrays; bf16 is rounded to nearest even
//   load(p, n), store(p, a, n)         of the first n numbers alone, n from 0 to 16; others are 0
//   load_bits(p), store_bits(p, a)     32 bf16 as they are, to be moved
//   + - * max min                      of lanes; max and min give b where a is NaN
//   store_interleaved(p, a, b, n)            bf16 a0 b0 a1 b1 ... of the first n lanes
//   load_interleaved(p, a, b)                the reverse, of all lanes
//   interleaved_bits(p, q)                   bf16 p0 q0 p1 q1 ... as they are, to be moved
//   fma(a, b, c), fnma(a, b, c)        a * b + c and c - a * b, rounded once where the machine can
//   select(a > b, x, y)                lanes of x where the comparison holds, else of y
//   bits(mask), mask_of(bits)          lane i is bit i
//   root(a), quotient(a, b), inverse(b) below 1 ulp; see there
//   round(a), scale(a, n)              to the nearest integer; a * 2^n for whole n in [-300, 300]
//   split(a, n)                        the reverse, for normal a > 0: the result is in [0.75, 1.5)
//   U32: fill_u32(x), + ^, count_from(x) for x, x + 1, ...; multiply(a, b, high, low), both halves
//   of the products; low_half(a), high_half(a), its 16 bits as F32
//   sum(a), largest(a)                 of the lanes, in the order of a tree
//   transpose(rows)                    turns 16 vectors, rows of a matrix, into its columns

#include <cstdint>

#include "gallop/kernel/number.h"

#if defined(__AVX512F__)
#include "gallop/kernel/cpu/simd_avx512.h"
#else
#include "gallop/kernel/cpu/simd_generic.h"
#endif

namespace gallop::kernel {
namespace {

inline float as_fp32(float x) { return x; }
inline float as_fp32(Bf16 x) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(x.bits) << 16);
}

/// All lanes, added in order in fp64.
inline double sum_fp64(const F32& a) {
  float lanes[kLanes];
  store(lanes, a);
  double total = 0;
  for (const float lane : lanes) total += static_cast<double>(lane);
  return total;
}

}  // namespace
}  // namespace gallop::kernel
