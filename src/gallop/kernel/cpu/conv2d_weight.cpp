#include "gallop/kernel/cpu/conv2d_weight.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

void weave(const Bf16* row, int64_t pixels, int64_t step, int64_t width, Bf16* to) {
  for (int64_t i = 0; i < pixels; i += 2) {
    const Bf16 *even = row + i * step, *odd = even + step;
    for (int64_t c = 0; c < width; c += kLanes) {
      store_bits(to + i * width + 2 * c, woven_bits(even + c, odd + c));
    }
  }
}

// Two pixels woven are numbers of 32 bits, and the transposed of those is as wanted.
void turn(const Bf16* from, int64_t pixels, int64_t channels, Bf16* to) {
  F32 block[kLanes];
  for (int64_t i = 0; i < pixels; i += 2 * kLanes) {
    for (int64_t c = 0; c < channels; c += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        const Bf16* even = from + (i + 2 * k) * channels + c;
        block[k] = woven_bits(even, even + channels);
      }
      transpose(block);
      for (int64_t k = 0; k < kLanes; ++k) store_bits(to + (c + k) * pixels + i, block[k]);
    }
  }
}

}  // namespace

template <>
Conv2dWeightBodies make_bodies<Conv2dWeightBodies, kIsa>() {
  return {.weave = weave, .turn = turn};
}

}  // namespace gallop::kernel
