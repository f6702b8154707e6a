#include "gallop/kernel/cpu/depthwise_conv2d.h"

#include "gallop/kernel/cpu/simd.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Vectors of channels that a turn computes: their additions need not wait for each other.
constexpr int64_t kTurn = 4;

/// A pixel and the weights it is multiplied by, one per channel.
template <typename Number>
struct Tap {
  const Number* pixel;
  const float* weight;
};

template <int64_t kVectors, typename Number, typename Lanes>
[[gnu::always_inline]] inline void sum_block(const Tap<Number>* taps, int64_t count, Lanes lanes,
                                             int64_t channel, Number* to) {
  F32 sums[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sums[v] = fill(0);
  for (int64_t t = 0; t < count; ++t) {
    const Number* const pixel = taps[t].pixel + channel;
    const float* const weight = taps[t].weight + channel;
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[v] = fma(lanes.get(pixel + v * kLanes), lanes.get(weight + v * kLanes), sums[v]);
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) lanes.put(to + channel + v * kLanes, sums[v]);
}

// to[c] = the sum of pixel[c] * weight[c] over the taps.
template <typename Number>
inline void sum_taps(const Tap<Number>* taps, int64_t count, int64_t channels, Number* to) {
  int64_t channel = 0;
  for (; channel + kTurn * kLanes <= channels; channel += kTurn * kLanes) {
    sum_block<kTurn>(taps, count, Whole{}, channel, to);
  }
  over_vectors(channel, channels,
               [&](int64_t at, auto lanes) { sum_block<1>(taps, count, lanes, at, to); });
}

// The place of y that a place of x has taken part in by a tap of the window, in one dimension; -1
// if there is none.
inline int64_t place_of(const DepthwiseSizes& s, int64_t place, int64_t tap, int64_t size) {
  const int64_t distance = place + s.padding - tap * s.dilation;
  if (distance < 0 || distance % s.stride != 0) return -1;
  const int64_t found = distance / s.stride;
  return found < size ? found : -1;
}

template <typename Number>
void data_gradient(const DepthwiseSizes& s, const Number* dy, const float* weight, Number* dx,
                   int64_t begin, int64_t end) {
  const int64_t line = s.out_width * s.channels;
  Tap<Number> taps[kMostDepthwiseTaps];
  for (int64_t row = begin; row < end; ++row) {
    const Number* const image = dy + row / s.height * s.out_height * line;
    for (int64_t w = 0; w < s.width; ++w) {
      int64_t count = 0;
      for (int64_t i = 0; i < s.window_height; ++i) {
        const int64_t y = place_of(s, row % s.height, i, s.out_height);
        if (y < 0) continue;
        for (int64_t j = 0; j < s.window_width; ++j) {
          const int64_t x = place_of(s, w, j, s.out_width);
          if (x < 0) continue;
          taps[count++] = {image + y * line + x * s.channels,
                           weight + (i * s.window_width + j) * s.channels};
        }
      }
      sum_taps(taps, count, s.channels, dx + (row * s.width + w) * s.channels);
    }
  }
}

/// Where some columns of the window begin, in one of its rows.
struct WindowColumns {
  int64_t row, first;
};

// The gradient of kColumns columns of the window for kVectors vectors of channels.
template <int64_t kColumns, int64_t kVectors, typename Number, typename Lanes>
[[gnu::always_inline]] inline void weight_block(const DepthwiseSizes& s, const Number* dy,
                                                const Number* x, float* weight, int64_t begin,
                                                int64_t end, WindowColumns columns, Lanes lanes,
                                                int64_t channel) {
  const int64_t channels = s.channels, move = columns.first * s.dilation - s.padding;
  // Columns of dy whose places in x are all within the image.
  const int64_t last = s.width - 1 - move - (kColumns - 1) * s.dilation;
  int64_t from = move < 0 ? (-move + s.stride - 1) / s.stride : 0;
  from = from < s.out_width ? from : s.out_width;
  int64_t to = last < 0 ? 0 : last / s.stride + 1;
  to = to < s.out_width ? to : s.out_width;
  to = to > from ? to : from;
  F32 sums[kColumns][kVectors];
  for (int64_t j = 0; j < kColumns; ++j) {
    for (int64_t v = 0; v < kVectors; ++v) sums[j][v] = fill(0);
  }
  for (int64_t row = begin; row < end; ++row) {
    const int64_t image = row / s.out_height;
    const int64_t h = row % s.out_height * s.stride - s.padding + columns.row * s.dilation;
    if (h < 0 || h >= s.height) continue;
    const Number* const gradient = dy + row * s.out_width * channels + channel;
    const Number* const source = x + (image * s.height + h) * s.width * channels + channel;
    const auto near_border = [&](int64_t w) {
      for (int64_t j = 0; j < kColumns; ++j) {
        const int64_t place = w * s.stride + move + j * s.dilation;
        if (place < 0 || place >= s.width) continue;
        for (int64_t v = 0; v < kVectors; ++v) {
          sums[j][v] = fma(lanes.get(gradient + w * channels + v * kLanes),
                           lanes.get(source + place * channels + v * kLanes), sums[j][v]);
        }
      }
    };
    for (int64_t w = 0; w < from; ++w) near_border(w);
    for (int64_t w = from; w < to; ++w) {
      const Number* const places = source + (w * s.stride + move) * channels;
      for (int64_t v = 0; v < kVectors; ++v) {
        const F32 g = lanes.get(gradient + w * channels + v * kLanes);
        for (int64_t j = 0; j < kColumns; ++j) {
          sums[j][v] =
              fma(g, lanes.get(places + j * s.dilation * channels + v * kLanes), sums[j][v]);
        }
      }
    }
    for (int64_t w = to; w < s.out_width; ++w) near_border(w);
  }
  for (int64_t j = 0; j < kColumns; ++j) {
    float* const at =
        weight + (columns.row * s.window_width + columns.first + j) * channels + channel;
    for (int64_t v = 0; v < kVectors; ++v) {
      lanes.put(at + v * kLanes, lanes.get(at + v * kLanes) + sums[j][v]);
    }
  }
}

template <int64_t kColumns, int64_t kVectors, typename Number>
void weight_columns(const DepthwiseSizes& s, const Number* dy, const Number* x, float* weight,
                    int64_t begin, int64_t end, WindowColumns columns) {
  int64_t channel = 0;
  for (; channel + kVectors * kLanes <= s.channels; channel += kVectors * kLanes) {
    weight_block<kColumns, kVectors>(s, dy, x, weight, begin, end, columns, Whole{}, channel);
  }
  over_vectors(channel, s.channels, [&](int64_t at, auto lanes) {
    weight_block<kColumns, 1>(s, dy, x, weight, begin, end, columns, lanes, at);
  });
}

template <typename Number>
void bias_gradient(const DepthwiseSizes& s, const Number* dy, float* bias, int64_t begin,
                   int64_t end) {
  over_vectors(0, s.channels, [&](int64_t channel, auto lanes) {
    F32 sum = fill(0);
    for (int64_t i = begin * s.out_width; i < end * s.out_width; ++i) {
      sum = sum + lanes.get(dy + i * s.channels + channel);
    }
    lanes.put(bias + channel, lanes.get(bias + channel) + sum);
  });
}

template <typename Number>
void weight_gradient(const DepthwiseSizes& s, const Number* dy, const Number* x, float* weight,
                     float* bias, int64_t begin, int64_t end) {
  for (int64_t row = 0; row < s.window_height; ++row) {
    switch (s.window_width) {
      case 3: weight_columns<3, 2>(s, dy, x, weight, begin, end, {row, 0}); break;
      case 5: weight_columns<5, 1>(s, dy, x, weight, begin, end, {row, 0}); break;
      case 7: weight_columns<7, 1>(s, dy, x, weight, begin, end, {row, 0}); break;
      default:
        for (int64_t j = 0; j < s.window_width; ++j) {
          weight_columns<1, kTurn>(s, dy, x, weight, begin, end, {row, j});
        }
    }
  }
  if (bias != nullptr) bias_gradient(s, dy, bias, begin, end);
}

template <typename Number>
DepthwiseKernels<Number> kernels() {
  return {.data_gradient = data_gradient<Number>, .weight_gradient = weight_gradient<Number>};
}

}  // namespace

template <>
DepthwiseKernels<float> make_kernels<DepthwiseKernels<float>, kIsa>() {
  return kernels<float>();
}
template <>
DepthwiseKernels<Bf16> make_kernels<DepthwiseKernels<Bf16>, kIsa>() {
  return kernels<Bf16>();
}

}  // namespace gallop::kernel
