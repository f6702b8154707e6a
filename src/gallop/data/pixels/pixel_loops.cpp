// Compiled without contraction: products and sums are fused only where __builtin_fmaf says so, as
// torch's kernels do. Clamps are written so that g++ vectorizes them.
#include "gallop/data/pixels/pixel_loops.h"

#include <algorithm>
#include <cstring>

#define GALLOP_LOOP [[gnu::always_inline]] inline

namespace gallop::data::pixels {

namespace {

constexpr int kBlock = 64;

GALLOP_LOOP float clamped(float value, float most) {
  value = value > 0.0F ? value : 0.0F;
  return value < most ? value : most;
}

GALLOP_LOOP uint8_t truncated(float value) {
  return static_cast<uint8_t>(static_cast<int>(clamped(value, 255.0F)));
}

/// A block of pixels, one array per channel.
struct Planes {
  alignas(64) uint8_t r[kBlock], g[kBlock], b[kBlock];
};

GALLOP_LOOP void split(const uint8_t* rgb, Planes& planes) {
  for (ptrdiff_t i = 0; i < kBlock; ++i) {
    planes.r[i] = rgb[3 * i];
    planes.g[i] = rgb[3 * i + 1];
    planes.b[i] = rgb[3 * i + 2];
  }
}

GALLOP_LOOP void join(const Planes& planes, uint8_t* rgb) {
  for (ptrdiff_t i = 0; i < kBlock; ++i) {
    rgb[3 * i] = planes.r[i];
    rgb[3 * i + 1] = planes.g[i];
    rgb[3 * i + 2] = planes.b[i];
  }
}

// torchvision's _rgb_to_grayscale_image, floored.
GALLOP_LOOP int gray_of(uint8_t r, uint8_t g, uint8_t b) {
  const float red = 0.2989F * static_cast<float>(r);
  const float red_green = __builtin_fmaf(0.587F, static_cast<float>(g), red);
  return static_cast<int>(__builtin_fmaf(0.114F, static_cast<float>(b), red_green));
}

GALLOP_LOOP void gray_block(const Planes& planes, float* gray) {
  for (int i = 0; i < kBlock; ++i) {
    gray[i] = static_cast<float>(gray_of(planes.r[i], planes.g[i], planes.b[i]));
  }
}

GALLOP_LOOP void blend_block(const float* gray, float own, float other, uint8_t* values) {
  for (int i = 0; i < kBlock; ++i) {
    values[i] = truncated(__builtin_fmaf(gray[i], other, static_cast<float>(values[i]) * own));
  }
}

struct Saturate {
  float own, other;
  GALLOP_LOOP void operator()(Planes& planes) const {
    alignas(64) float gray[kBlock];
    gray_block(planes, gray);
    blend_block(gray, own, other, planes.r);
    blend_block(gray, own, other, planes.g);
    blend_block(gray, own, other, planes.b);
  }
};

struct ToGray {
  GALLOP_LOOP void operator()(Planes& planes) const {
    for (int i = 0; i < kBlock; ++i) {
      const int gray = gray_of(planes.r[i], planes.g[i], planes.b[i]);
      planes.r[i] = planes.g[i] = planes.b[i] = static_cast<uint8_t>(gray);
    }
  }
};

GALLOP_LOOP int byte_of_unit(float value) {
  return static_cast<int>(clamped(value, 1.0F) * 255.999F);
}

// To hue, saturation and value as in Pillow's Convert.c, and back.
struct TurnHue {
  float shift;

  GALLOP_LOOP void operator()(Planes& planes) const {
    alignas(64) float hue[kBlock], saturation[kBlock], value[kBlock];
    to_hsv(planes, hue, saturation, value);
    to_rgb(hue, saturation, value, planes);
  }

  GALLOP_LOOP void to_hsv(const Planes& planes, float* hue, float* saturation, float* value) const {
    for (int i = 0; i < kBlock; ++i) {
      const float r = static_cast<float>(planes.r[i]) * (1.0F / 255);
      const float g = static_cast<float>(planes.g[i]) * (1.0F / 255);
      const float b = static_cast<float>(planes.b[i]) * (1.0F / 255);
      const float rg_most = r > g ? r : g, rg_least = r < g ? r : g;
      const float most = rg_most > b ? rg_most : b, least = rg_least < b ? rg_least : b;
      const float range = most - least;
      const bool is_gray = most == least;
      const float divisor = is_gray ? 1.0F : range;
      const float from_r = (most - r) / divisor;
      const float from_g = (most - g) / divisor;
      const float from_b = (most - b) / divisor;
      const float at_r = from_b - from_g;
      const float at_g = (from_r + 2.0F) - from_b;
      const float at_b = (from_g + 4.0F) - from_r;
      const float at_gb = most == g ? at_g : at_b;
      const float sixths = most == r ? at_r : at_gb;
      const float turned = sixths * (1.0F / 6) + 1.0F;
      const float whole = static_cast<float>(static_cast<int>(turned));
      const float shifted = (turned - whole) + shift;  // In [-0.5, 1.5).
      const float rest = shifted - static_cast<float>(static_cast<int>(shifted));
      const float positive = rest < 0.0F ? rest + 1.0F : rest;
      hue[i] = positive;
      saturation[i] = range / (is_gray ? 1.0F : most);
      value[i] = most;
    }
  }

  GALLOP_LOOP void to_rgb(const float* hue, const float* saturation, const float* value,
                          Planes& planes) const {
    // With masks, as g++ makes branches of conditions on the sector.
    for (int i = 0; i < kBlock; ++i) {
      const float sixths = hue[i] * 6.0F;
      const int sector = static_cast<int>(sixths);  // Up to 6, which is sector 0.
      const float rest = sixths - static_cast<float>(sector);
      const float faded = saturation[i] * rest, paled = 1.0F - saturation[i];
      const int v = byte_of_unit(value[i]), p = byte_of_unit(paled * value[i]);
      const int q = byte_of_unit((1.0F - faded) * value[i]);
      const int t = byte_of_unit((faded + paled) * value[i]);
      const int in_0 = -static_cast<int>((sector == 0) | (sector == 6));
      const int in_1 = -static_cast<int>(sector == 1), in_2 = -static_cast<int>(sector == 2);
      const int in_3 = -static_cast<int>(sector == 3), in_4 = -static_cast<int>(sector == 4);
      const int in_5 = -static_cast<int>(sector == 5);
      const int r = (v & (in_0 | in_5)) | (q & in_1) | (p & (in_2 | in_3)) | (t & in_4);
      const int g = (v & (in_1 | in_2)) | (q & in_3) | (p & (in_4 | in_5)) | (t & in_0);
      const int b = (v & (in_3 | in_4)) | (q & in_5) | (p & (in_0 | in_1)) | (t & in_2);
      planes.r[i] = static_cast<uint8_t>(r);
      planes.g[i] = static_cast<uint8_t>(g);
      planes.b[i] = static_cast<uint8_t>(b);
    }
  }
};

template <typename Map>
GALLOP_LOOP void map_blocks(const uint8_t* rgb, int64_t pixels, const Map& map, uint8_t* out) {
  Planes planes;
  int64_t i = 0;
  for (; i + kBlock <= pixels; i += kBlock) {
    split(rgb + 3 * i, planes);
    map(planes);
    join(planes, out + 3 * i);
  }
  if (i == pixels) return;
  uint8_t rest[3 * kBlock] = {};
  std::memcpy(rest, rgb + 3 * i, static_cast<size_t>(3 * (pixels - i)));
  split(rest, planes);
  map(planes);
  join(planes, rest);
  std::memcpy(out + 3 * i, rest, static_cast<size_t>(3 * (pixels - i)));
}

GALLOP_LOOP void saturate(const uint8_t* rgb, int64_t pixels, float own, float other,
                          uint8_t* out) {
  map_blocks(rgb, pixels, Saturate{own, other}, out);
}

GALLOP_LOOP void grayscale(const uint8_t* rgb, int64_t pixels, uint8_t* out) {
  map_blocks(rgb, pixels, ToGray{}, out);
}

GALLOP_LOOP void turn_hue(const uint8_t* rgb, int64_t pixels, float shift, uint8_t* out) {
  map_blocks(rgb, pixels, TurnHue{shift}, out);
}

GALLOP_LOOP uint64_t gray_sum(const uint8_t* rgb, int64_t pixels) {
  Planes planes;
  uint64_t sum = 0;
  int64_t i = 0;
  for (; i + kBlock <= pixels; i += kBlock) {
    split(rgb + 3 * i, planes);
    int of_block = 0;
    for (int k = 0; k < kBlock; ++k) of_block += gray_of(planes.r[k], planes.g[k], planes.b[k]);
    sum += static_cast<uint64_t>(of_block);
  }
  for (; i < pixels; ++i) {
    sum += static_cast<uint64_t>(gray_of(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]));
  }
  return sum;
}

GALLOP_LOOP void sharpen(const uint8_t* above, const uint8_t* row, const uint8_t* below,
                         int64_t count, int channels, float other, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t left = i - channels, right = i + channels;
    const int sum = above[left] + above[i] + above[right] + row[left] + 5 * row[i] + row[right] +
                    below[left] + below[i] + below[right];
    // sum / 13, rounded: a multiplication that is exact for all sums of 13 bytes.
    const auto blurred =
        static_cast<int>((static_cast<uint32_t>(static_cast<uint16_t>(sum + 6)) * 5042U) >> 16U);
    const float by = static_cast<float>(blurred - row[i]);
    out[i] = truncated(__builtin_fmaf(by, other, static_cast<float>(row[i])));
  }
}

constexpr int kLanes = 48;  // A multiple of 1 and 3 channels.

GALLOP_LOOP void extremes(const uint8_t* values, int64_t pixels, int channels, uint8_t* low,
                          uint8_t* high) {
  uint8_t lows[kLanes], highs[kLanes];
  std::memset(lows, 255, sizeof lows);
  std::memset(highs, 0, sizeof highs);
  const int64_t count = pixels * channels;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const uint8_t value = values[i + k];
      lows[k] = value < lows[k] ? value : lows[k];
      highs[k] = value > highs[k] ? value : highs[k];
    }
  }
  for (int k = 0; i + k < count; ++k) {
    lows[k] = std::min(lows[k], values[i + k]);
    highs[k] = std::max(highs[k], values[i + k]);
  }
  for (int c = 0; c < channels; ++c) {
    low[c] = 255;
    high[c] = 0;
    for (int k = c; k < kLanes; k += channels) {
      low[c] = std::min(low[c], lows[k]);
      high[c] = std::max(high[c], highs[k]);
    }
  }
}

// The fused sums of all taps, row by row, as oneDNN adds them up. The block stays in registers.
GALLOP_LOOP void blur_block(const float* rows, int64_t stride, const float* kernel, int height,
                            int width, int channels, float* __restrict sum) {
  for (int64_t i = 0; i < kBlurSlack; ++i) sum[i] = 0;
  for (int y = 0; y < height; ++y, rows += stride) {
    for (int x = 0; x < width; ++x) {
      const float weight = *kernel++;
      const float* const values = rows + ptrdiff_t{x} * channels;
      for (int64_t i = 0; i < kBlurSlack; ++i) sum[i] = __builtin_fmaf(values[i], weight, sum[i]);
    }
  }
}

GALLOP_LOOP void blur(const float* rows, int64_t stride, const float* kernel, int height, int width,
                      int channels, int64_t count, uint8_t* __restrict out) {
  for (int64_t first = 0; first < count; first += kBlurSlack) {
    alignas(64) float sum[kBlurSlack];
    alignas(64) uint8_t bytes[kBlurSlack];
    blur_block(rows + first, stride, kernel, height, width, channels, sum);
    for (int64_t i = 0; i < kBlurSlack; ++i) {
      bytes[i] = static_cast<uint8_t>(static_cast<int>(__builtin_rintf(clamped(sum[i], 255.0F))));
    }
    std::memcpy(out + first, bytes, static_cast<size_t>(std::min(kBlurSlack, count - first)));
  }
}

/// A position in the source, in pixels.
struct Place {
  float x, y;
};

// As torch's grid_sample (align_corners=False) computes it from torchvision's grid.
GALLOP_LOOP float position(float at, int size) {
  return __builtin_fmaf(at + 1.0F, static_cast<float>(size) / 2, -0.5F);
}

GALLOP_LOOP float product(float x, float y, const std::array<float, 3>& by) {
  return (x * by[0] + y * by[1]) + by[2];
}

template <bool kPerspective>
GALLOP_LOOP Place place_of_output(const WarpRow& row, int i) {
  const float first = kPerspective ? 0.5F : static_cast<float>(1 - row.width) * 0.5F;
  const float x = first + static_cast<float>(i);
  float at_x = product(x, row.y, row.from_x), at_y = product(x, row.y, row.from_y);
  if (kPerspective) {
    const float divisor = product(x, row.y, row.divisor);
    at_x = at_x / divisor - 1.0F;
    at_y = at_y / divisor - 1.0F;
  }
  return {position(at_x, row.width), position(at_y, row.height)};
}

template <bool kPerspective>
GALLOP_LOOP void nearest_of(const WarpRow& row, int32_t* __restrict index) {
  const auto last_x = static_cast<float>(row.width - 1),
             last_y = static_cast<float>(row.height - 1);
  for (int i = 0; i < row.width; ++i) {
    const Place place = place_of_output<kPerspective>(row, i);
    const float at_x = __builtin_rintf(place.x), at_y = __builtin_rintf(place.y);
    const bool inside = (at_x >= 0.0F) & (at_x <= last_x) & (at_y >= 0.0F) & (at_y <= last_y);
    const auto column = static_cast<int>(inside ? at_x : 0.0F);
    const auto line = static_cast<int>(inside ? at_y : 0.0F);
    index[i] = inside ? line * row.width + column : -1;
  }
}

GALLOP_LOOP void nearest(const WarpRow& row, int32_t* index) {
  if (row.is_perspective) return nearest_of<true>(row, index);
  nearest_of<false>(row, index);
}

// -1 outside the image, by a mask.
GALLOP_LOOP int32_t index_at(int x, int y, int width, int height) {
  const bool inside = (x >= 0) & (x < width) & (y >= 0) & (y < height);
  const int mask = -static_cast<int>(inside);
  return ((y * width + x) & mask) | ~mask;
}

// Towards zero; far outside of 0..size, a place just outside.
GALLOP_LOOP int place_of(float floor, int size) {
  const auto most = static_cast<float>(size);
  const float at_least = floor > -2.0F ? floor : -2.0F;
  return static_cast<int>(at_least < most ? at_least : most);
}

// Far outside, also where a perspective divides by zero, just outside.
GALLOP_LOOP float kept_near(float at, int size) {
  const float at_least = at > -2.0F ? at : -2.0F;
  const auto most = static_cast<float>(size + 1);
  return at_least < most ? at_least : most;
}

template <bool kPerspective>
GALLOP_LOOP void corners_of(const WarpRow& whole_row, const Corners& out) {
  const WarpRow row = whole_row;
  const int width = row.width, height = row.height;
  const auto [top_left, top_right, bottom_left, bottom_right, right, bottom] = out;
#pragma GCC ivdep
  for (int i = 0; i < width; ++i) {
    const Place place = place_of_output<kPerspective>(row, i);
    const float at_x = kPerspective ? kept_near(place.x, width) : place.x;
    const float at_y = kPerspective ? kept_near(place.y, height) : place.y;
    const float left = __builtin_floorf(at_x), top = __builtin_floorf(at_y);
    const int column = place_of(left, width), line = place_of(top, height);
    right[i] = at_x - left;
    bottom[i] = at_y - top;
    top_left[i] = index_at(column, line, width, height);
    top_right[i] = index_at(column + 1, line, width, height);
    bottom_left[i] = index_at(column, line + 1, width, height);
    bottom_right[i] = index_at(column + 1, line + 1, width, height);
  }
}

GALLOP_LOOP void corners(const WarpRow& row, const Corners& out) {
  if (row.is_perspective) return corners_of<true>(row, out);
  corners_of<false>(row, out);
}

GALLOP_LOOP void interpolate(const CornerValues& in, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    const float right = in.right[i], bottom = in.bottom[i];
    const float left = 1.0F - right, top = 1.0F - bottom;
    float sum = static_cast<float>(in.top_left[i]) * (top * left);
    sum = __builtin_fmaf(static_cast<float>(in.top_right[i]), top * right, sum);
    sum = __builtin_fmaf(static_cast<float>(in.bottom_left[i]), bottom * left, sum);
    out[i] = __builtin_fmaf(static_cast<float>(in.bottom_right[i]), bottom * right, sum);
  }
}

GALLOP_LOOP void fill_outside(const float* mask, float fill, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) values[i] = (values[i] - fill) * mask[i] + fill;
}

GALLOP_LOOP void round(const float* values, int64_t count, uint8_t* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>(static_cast<int>(__builtin_rintf(values[i])));
  }
}

GALLOP_LOOP void accumulate(const uint8_t* values, int64_t count, float weight,
                            float* __restrict sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += weight * static_cast<float>(values[i]);
}

// One version per instruction set. Dispatched by hand, because target_clones resolves before a
// sanitizer's runtime is initialized.
template <auto kLoop>
struct Versions;

template <typename R, typename... Args, R (*kLoop)(Args...)>
struct Versions<kLoop> {
  static R plain(Args... args) { return kLoop(args...); }
#if defined(__x86_64__)
  [[gnu::target("avx2,fma")]] static R avx2(Args... args) { return kLoop(args...); }
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")]] static R avx512(
      Args... args) {
    return kLoop(args...);
  }
#endif
};

enum class Isa { kPlain, kAvx2, kAvx512 };

template <auto kLoop>
auto version(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return Versions<kLoop>::avx512;
  if (isa == Isa::kAvx2) return Versions<kLoop>::avx2;
#endif
  static_cast<void>(isa);
  return Versions<kLoop>::plain;
}

PixelLoops loops_for(Isa isa) {
  return {.gray_sum = version<gray_sum>(isa),
          .grayscale = version<grayscale>(isa),
          .saturate = version<saturate>(isa),
          .turn_hue = version<turn_hue>(isa),
          .sharpen = version<sharpen>(isa),
          .extremes = version<extremes>(isa),
          .blur = version<blur>(isa),
          .nearest = version<nearest>(isa),
          .corners = version<corners>(isa),
          .interpolate = version<interpolate>(isa),
          .fill_outside = version<fill_outside>(isa),
          .round = version<round>(isa),
          .accumulate = version<accumulate>(isa)};
}

template <size_t kChannels>
void map_channels(const uint8_t* values, int64_t pixels, const ChannelTables& tables,
                  uint8_t* out) {
  const auto table = tables.channels<kChannels>();
  const size_t count = kChannels * static_cast<size_t>(pixels);
  for (size_t i = 0; i < count; i += kChannels) {
    for (size_t c = 0; c < kChannels; ++c) out[i + c] = table[c][values[i + c]];
  }
}

// Two counters per value, as incrementing the same one twice in a row waits for the store.
template <size_t kChannels>
void count_channels(const uint8_t* values, int64_t pixels, Histogram* histograms) {
  std::array<Histogram, kChannels> odd{};
  for (size_t c = 0; c < kChannels; ++c) histograms[c] = {};
  const size_t count = kChannels * static_cast<size_t>(pixels);
  size_t i = 0;
  for (; i + 2 * kChannels <= count; i += 2 * kChannels) {
    for (size_t c = 0; c < kChannels; ++c) ++histograms[c][values[i + c]];
    for (size_t c = 0; c < kChannels; ++c) ++odd[c][values[i + kChannels + c]];
  }
  for (size_t c = 0; i < count; ++c, ++i) ++histograms[c][values[i]];
  for (size_t c = 0; c < kChannels; ++c) {
    for (size_t value = 0; value < 256; ++value) histograms[c][value] += odd[c][value];
  }
}

template <size_t kChannels, bool kMapped>
void gather_channels(const uint8_t* source, const int32_t* index, int64_t count,
                     const ChannelTables& tables, const std::array<uint8_t, 3>& fill,
                     uint8_t* out) {
  const auto table = tables.channels<kChannels>();
  for (int64_t i = 0; i < count; ++i, out += kChannels) {
    if (index[i] < 0) {
      for (size_t c = 0; c < kChannels; ++c) out[c] = fill[c];
      continue;
    }
    const uint8_t* const from = source + kChannels * static_cast<size_t>(index[i]);
    for (size_t c = 0; c < kChannels; ++c) out[c] = kMapped ? table[c][from[c]] : from[c];
  }
}

}  // namespace

PixelLoops portable_pixel_loops() { return loops_for(Isa::kPlain); }

PixelLoops best_pixel_loops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("fma")) {
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      return loops_for(Isa::kAvx512);
    }
    if (__builtin_cpu_supports("avx2")) return loops_for(Isa::kAvx2);
  }
#endif
  return portable_pixel_loops();
}

void map_values(const uint8_t* values, int64_t pixels, const ChannelTables& tables, uint8_t* out) {
  tables.channels() == 3 ? map_channels<3>(values, pixels, tables, out)
                         : map_channels<1>(values, pixels, tables, out);
}

void count_values(const uint8_t* values, int64_t pixels, int channels, Histogram* histograms) {
  channels == 3 ? count_channels<3>(values, pixels, histograms)
                : count_channels<1>(values, pixels, histograms);
}

void gather_pixels(const uint8_t* source, const int32_t* index, int64_t count,
                   const ChannelTables& tables, const std::array<uint8_t, 3>& fill, uint8_t* out) {
  const auto gather =
      tables.is_identity()
          ? (tables.channels() == 3 ? gather_channels<3, false> : gather_channels<1, false>)
          : (tables.channels() == 3 ? gather_channels<3, true> : gather_channels<1, true>);
  gather(source, index, count, tables, fill, out);
}

}  // namespace gallop::data::pixels
