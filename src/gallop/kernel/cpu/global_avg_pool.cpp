#include "gallop/kernel/cpu/global_avg_pool.h"

#include "gallop/kernel/cpu/simd_ieee.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Additions of different vectors need not wait for each other.
constexpr int64_t kTurn = kGlobalAvgPoolChannels / kLanes;
// Pixels whose sum is added to the total at once: rounding errors grow with the blocks alone.
constexpr int64_t kBlock = 64;

template <int64_t kVectors, typename Number, typename Lanes>
[[gnu::always_inline]] inline void mean(const GlobalAvgPoolSizes& sizes, const Number* x, Number* y,
                                        Lanes lanes) {
  F32 totals[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) totals[v] = fill(0);
  for (int64_t first = 0; first < sizes.pixels; first += kBlock) {
    const int64_t end = first + kBlock < sizes.pixels ? first + kBlock : sizes.pixels;
    F32 sums[kVectors];
    for (int64_t v = 0; v < kVectors; ++v) sums[v] = fill(0);
    for (int64_t i = first; i < end; ++i) {
      const Number* const pixel = x + i * sizes.channels;
      for (int64_t v = 0; v < kVectors; ++v) sums[v] = sums[v] + lanes.get(pixel + v * kLanes);
    }
    for (int64_t v = 0; v < kVectors; ++v) totals[v] = totals[v] + sums[v];
  }
  const F32 pixels = fill(static_cast<float>(sizes.pixels));
  for (int64_t v = 0; v < kVectors; ++v) lanes.put(y + v * kLanes, divide(totals[v], pixels));
}

template <typename Number>
void forward(const GlobalAvgPoolSizes& sizes, const Number* x, Number* y, int64_t begin,
             int64_t end) {
  const int64_t blocks = (sizes.channels + kGlobalAvgPoolChannels - 1) / kGlobalAvgPoolChannels;
  for (int64_t task = begin; task < end; ++task) {
    const int64_t image = task / blocks, first = task % blocks * kGlobalAvgPoolChannels;
    const Number* const from = x + image * sizes.pixels * sizes.channels;
    Number* const to = y + image * sizes.channels;
    if (first + kGlobalAvgPoolChannels <= sizes.channels) {
      mean<kTurn>(sizes, from + first, to + first, Whole{});
    } else {
      over_vectors(first, sizes.channels,
                   [&](int64_t c, auto lanes) { mean<1>(sizes, from + c, to + c, lanes); });
    }
  }
}

// Pixels [begin, end) of one image.
template <int64_t kVectors, typename Number, typename Lanes>
[[gnu::always_inline]] inline void spread(const GlobalAvgPoolSizes& sizes, const Number* dy,
                                          Number* dx, int64_t begin, int64_t end, Lanes lanes) {
  const F32 pixels = fill(static_cast<float>(sizes.pixels));
  F32 values[kVectors];
  // LibTorch adds the gradient to zeros, which turns -0 into 0.
  for (int64_t v = 0; v < kVectors; ++v) {
    values[v] = divide(lanes.get(dy + v * kLanes), pixels) + fill(0);
  }
  for (int64_t i = begin; i < end; ++i) {
    for (int64_t v = 0; v < kVectors; ++v) {
      lanes.put(dx + i * sizes.channels + v * kLanes, values[v]);
    }
  }
}

template <typename Number>
void backward(const GlobalAvgPoolSizes& sizes, const Number* dy, Number* dx, int64_t begin,
              int64_t end) {
  while (begin < end) {
    const int64_t image = begin / sizes.pixels, start = image * sizes.pixels;
    const int64_t stop = end < start + sizes.pixels ? end : start + sizes.pixels;
    const Number* const from = dy + image * sizes.channels;
    Number* const to = dx + start * sizes.channels;
    int64_t channel = 0;
    for (; channel + kGlobalAvgPoolChannels <= sizes.channels; channel += kGlobalAvgPoolChannels) {
      spread<kTurn>(sizes, from + channel, to + channel, begin - start, stop - start, Whole{});
    }
    over_vectors(channel, sizes.channels, [&](int64_t c, auto lanes) {
      spread<1>(sizes, from + c, to + c, begin - start, stop - start, lanes);
    });
    begin = stop;
  }
}

template <typename Number>
GlobalAvgPoolKernels<Number> kernels() {
  return {.forward = forward<Number>, .backward = backward<Number>};
}

}  // namespace

template <>
GlobalAvgPoolKernels<float> make_kernels<GlobalAvgPoolKernels<float>, kIsa>() {
  return kernels<float>();
}
template <>
GlobalAvgPoolKernels<Bf16> make_kernels<GlobalAvgPoolKernels<Bf16>, kIsa>() {
  return kernels<Bf16>();
}

}  // namespace gallop::kernel
