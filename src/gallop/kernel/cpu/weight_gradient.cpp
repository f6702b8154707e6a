#include "gallop/kernel/cpu/weight_gradient.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

void interleave(const Bf16* from, int64_t stride, int64_t rows, int64_t width, Bf16* to) {
  for (int64_t i = 0; i < rows; i += 2) {
    const Bf16 *even = from + i * stride, *odd = even + stride;
    for (int64_t c = 0; c < width; c += kLanes) {
      store_bits(to + i * width + 2 * c, interleaved_bits(even + c, odd + c));
    }
  }
}

// Two interleaved rows are numbers of 32 bits, and the transposed of those is as wanted.
void turn(const Bf16* from, int64_t stride, int64_t rows, int64_t channels, Bf16* to) {
  F32 block[kLanes];
  for (int64_t i = 0; i < rows; i += 2 * kLanes) {
    for (int64_t c = 0; c < channels; c += kLanes) {
      for (int64_t k = 0; k < kLanes; ++k) {
        const Bf16* even = from + (i + 2 * k) * stride + c;
        block[k] = interleaved_bits(even, even + stride);
      }
      transpose(block);
      for (int64_t k = 0; k < kLanes; ++k) store_bits(to + (c + k) * rows + i, block[k]);
    }
  }
}

void turn_pairs(const Bf16* const* pairs, int64_t stride, int64_t first, int64_t channels,
                Bf16* to) {
  F32 block[kLanes];
  for (int64_t c = 0; c < channels; c += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const Bf16* even = pairs[k] + first + c;
      block[k] = interleaved_bits(even, even + stride);
    }
    transpose(block);
    for (int64_t k = 0; k < kLanes; ++k) store_bits(to + (c + k) * 2 * kLanes, block[k]);
  }
}

void round(const float* from, int64_t rows, int64_t columns, Bf16* to, int64_t to_stride) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      store(to + i * to_stride + j, load(from + i * columns + j));
    }
  }
}

void round_transposed(const float* from, int64_t rows, int64_t columns, Bf16* to,
                      int64_t to_stride) {
  F32 block[kLanes];
  for (int64_t i = 0; i < rows; i += kLanes) {
    for (int64_t j = 0; j < columns; j += kLanes) {
      load_block(from + i * columns + j, columns, block);
      transpose(block);
      store_block(to + j * to_stride + i, to_stride, block);
    }
  }
}

}  // namespace

template <>
WeightGradientKernels make_kernels<WeightGradientKernels, kIsa>() {
  return {.interleave = interleave,
          .turn = turn,
          .turn_pairs = turn_pairs,
          .round = round,
          .round_transposed = round_transposed};
}

}  // namespace gallop::kernel
