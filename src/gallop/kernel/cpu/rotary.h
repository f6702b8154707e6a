#pragma once

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

/// Rotates pairs (i, i + width / 2) of a row by the angles whose cosines and sines are
/// concatenated, or back if kBack.
template <bool kBack, typename From, typename To>
inline void rotate_row(const From* from, const float* cosines, int64_t width, To* to) {
  const int64_t half = width / 2;
  over_vectors(0, half, [&](int64_t i, auto lanes) {
    const F32 cosine = lanes.get(cosines + i);
    F32 sine = lanes.get(cosines + half + i);
    if (kBack) sine = fill(0) - sine;
    const F32 a = lanes.get(from + i), b = lanes.get(from + half + i);
    lanes.put(to + i, fnma(b, sine, a * cosine));
    lanes.put(to + half + i, fma(a, sine, b * cosine));
  });
}

}  // namespace
}  // namespace gallop::kernel
