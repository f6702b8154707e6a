#pragma once

#include "gallop/kernel/cpu/simd.h"

namespace gallop::kernel {
namespace {

/// The random numbers of base/philox.h for 16 counters at once: words[i] has word i of each.
inline void philox4x32(uint32_t key0, uint32_t key1, U32 (&words)[4]) {
  for (int round = 0; round < 10; ++round) {
    U32 a_high{}, a_low{}, b_high{}, b_low{};
    multiply(words[0], fill_u32(0xD2511F53U), a_high, a_low);
    multiply(words[2], fill_u32(0xCD9E8D57U), b_high, b_low);
    words[0] = b_high ^ words[1] ^ fill_u32(key0);
    words[2] = a_high ^ words[3] ^ fill_u32(key1);
    words[1] = b_low;
    words[3] = a_low;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
}

}  // namespace
}  // namespace gallop::kernel
