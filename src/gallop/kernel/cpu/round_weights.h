#pragma once

// Conversion of bf16 parameters of an update to fp32 and back, for sources of this folder.

#include "gallop/kernel/cpu/philox.h"
#include "gallop/kernel/cpu/simd_ieee.h"
#include "gallop/kernel/update.h"

namespace gallop::kernel {
namespace {

/// The elements of a chunk, plus the compensation of Kahan summation.
inline void widen_weights(const UpdateTensor& chunk, float* to) {
  const Bf16* const from = chunk.bf16_parameter;
  const auto put = [&](int64_t i, int64_t count) {
    F32 value = load(from + i, count);
    if (chunk.compensation != nullptr) value = value + load(chunk.compensation + i, count);
    store(to + i, value, count);
  };
  int64_t i = 0;
  for (; i + kLanes <= chunk.size; i += kLanes) put(i, kLanes);
  if (i < chunk.size) put(i, chunk.size - i);
}

/// Rounds to nearest and stores the error. Infinities have none, or they would become NaN.
inline void round_with_compensation(const float* from, const UpdateTensor& chunk) {
  for (int64_t i = 0; i < chunk.size; i += kLanes) {
    const int64_t count = chunk.size - i < kLanes ? chunk.size - i : kLanes;
    const F32 value = load(from + i, count);
    store(chunk.bf16_parameter + i, value, count);
    const F32 lost = value - load(chunk.bf16_parameter + i, count);
    const F32 most = fill(0x1p120F);
    store(chunk.compensation + i, select(most > without_sign(lost), lost, fill(0)), count);
  }
}

/// The upper half of `value` after adding `random` to its bits; NaN stays NaN.
inline Bf16 rounded_by(float value, uint32_t random) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  const bool is_nan = (bits & 0x7FFFFFFFU) > 0x7F800000U;
  return {static_cast<uint16_t>((is_nan ? bits | 0x400000U : bits + random) >> 16)};
}

inline void round_at_random(const float* from, const UpdateTensor& chunk) {
  const RoundingDraw& draw = chunk.draw;
  const int64_t size = chunk.size;
  for (int64_t begin = 0; begin < size; begin += kRoundingGroup) {
    const int64_t group = (chunk.first + begin) / kRoundingGroup;
    U32 words[4] = {count_from(static_cast<uint32_t>(group * kLanes)), fill_u32(draw.counter[0]),
                    fill_u32(draw.counter[1]), fill_u32(draw.counter[2])};
    philox4x32(draw.key[0], draw.key[1], words);
    uint32_t random[4 * kLanes];
    static_assert(sizeof words == sizeof random);
    __builtin_memcpy(random, words, sizeof words);
    Bf16 rounded[kRoundingGroup];
    float values[kRoundingGroup] = {};
    const int64_t count = size - begin < kRoundingGroup ? size - begin : kRoundingGroup;
    __builtin_memcpy(values, from + begin, static_cast<size_t>(count) * sizeof(float));
    for (int64_t word = 0; word < 4; ++word) {
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t at = 2 * word * kLanes + lane;
        const uint32_t bits = random[word * kLanes + lane];
        rounded[at] = rounded_by(values[at], bits & 0xFFFFU);
        rounded[at + kLanes] = rounded_by(values[at + kLanes], bits >> 16);
      }
    }
    __builtin_memcpy(chunk.bf16_parameter + begin, rounded,
                     static_cast<size_t>(count) * sizeof(Bf16));
  }
}

inline void round_weights(const float* from, const UpdateTensor& chunk) {
  switch (chunk.rounding) {
    case Rounding::kNearest:
      for (int64_t i = 0; i < chunk.size; i += kLanes) {
        const int64_t count = chunk.size - i < kLanes ? chunk.size - i : kLanes;
        store(chunk.bf16_parameter + i, load(from + i, count), count);
      }
      return;
    case Rounding::kStochastic: return round_at_random(from, chunk);
    case Rounding::kKahan: return round_with_compensation(from, chunk);
  }
}

}  // namespace
}  // namespace gallop::kernel
