#pragma once

// What a state in 8 bits stands for. NVRTC compiles it too.

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Numbers that share a scale, the largest size among them.
inline constexpr int kStateBlock = 256;

/// Dynamic quantization (Dettmers et al., "8-bit optimizers via block-wise quantization", ICLR
/// 2022) of numbers in [-1, 1], or in [0, 1] without a sign. Decade i of 7, which ends at
/// 10^(i - 6), is cut into 2^i cells of one width, without a sign into twice as many; a code stands
/// for the middle of its cell. Besides there are 0 and 1. Codes are in the order of their numbers:
/// `rank` counts them from 0 on, of negative numbers the other way.
template <bool kSigned>
struct StateMap {
  static constexpr int kDecades = 7;
  static constexpr int kZero = kSigned ? 127 : 0;       ///< The code of 0.
  static constexpr int kTopRank = kSigned ? 128 : 255;  ///< That of 1.

  GALLOP_DEVICE static constexpr double end(int decade) {
    double end = 1;
    for (int i = decade; i < kDecades - 1; ++i) end /= 10;
    return end;
  }
  GALLOP_DEVICE static constexpr double cells(int decade) {
    return static_cast<double>(1 << (decade + (kSigned ? 0 : 1)));
  }
  /// Rank of a decade's first cell.
  GALLOP_DEVICE static constexpr double first(int decade) {
    return cells(decade) - (kSigned ? 0 : 1);
  }
  /// From a rank to its number: slope * rank + offset.
  GALLOP_DEVICE static constexpr double slope(int decade) {
    return 0.9 * end(decade) / cells(decade);
  }
  GALLOP_DEVICE static constexpr double offset(int decade) {
    return 0.1 * end(decade) + slope(decade) * (0.5 - first(decade));
  }
  GALLOP_DEVICE static constexpr double number(int decade, double rank) {
    return slope(decade) * rank + offset(decade);
  }
  /// Where numbers begin to be nearer to a decade's first cell than to what comes before it, and to
  /// 1 than to what comes before it.
  GALLOP_DEVICE static constexpr double begin(int decade) {
    const double before = decade == 0 ? 0 : number(decade - 1, first(decade) - 1);
    return (before + number(decade, first(decade))) / 2;
  }
  GALLOP_DEVICE static constexpr double top_begin() {
    return (1 + number(kDecades - 1, kTopRank - 1)) / 2;
  }
  /// From a number to a rank, whose fraction is to be cut off: up * number + shift.
  GALLOP_DEVICE static constexpr double up(int decade) { return 1 / slope(decade); }
  GALLOP_DEVICE static constexpr double shift(int decade) {
    return 0.5 - offset(decade) / slope(decade);
  }
};

}  // namespace gallop::kernel
