#pragma once

#include <cstdint>
#include <cstring>

#include "gallop/data/image.h"

namespace gallop::data {

/// Sets the size of a whole image. The buffer grows if necessary and never shrinks.
inline void set_size(Image& image, int height, int width, int channels) {
  image.height = height;
  image.width = width;
  image.channels = channels;
  image.top = image.left = 0;
  image.reduction = 1;
  const size_t bytes =
      static_cast<size_t>(height) * static_cast<size_t>(width) * static_cast<size_t>(channels);
  if (image.pixels.size() < bytes) image.pixels.resize(bytes);
}

/// Luma of ITU-R BT.601, rounded, with libjpeg's weights, so that all formats convert to the same
/// gray.
inline uint8_t gray_of(const uint8_t* rgb) {
  return static_cast<uint8_t>((19595u * rgb[0] + 38470u * rgb[1] + 7471u * rgb[2] + 32768u) >> 16);
}

/// A color of CMYK as RGB, as Pillow converts it. `color` and `black` are what each ink leaves: 255
/// without ink.
inline uint8_t under_inks(unsigned color, unsigned black) {
  return static_cast<uint8_t>((color * black + 127) / 255);
}

/// Copies pixels, converting between 1 and 3 channels. `out` may alias `in` when converting from 3
/// channels to 1.
inline void convert_channels(const uint8_t* in, int in_channels, uint8_t* out, int out_channels,
                             int64_t pixels) {
  if (in_channels == out_channels) {
    std::memmove(out, in, static_cast<size_t>(pixels * in_channels));
  } else if (out_channels == 1) {
    for (int64_t i = 0; i < pixels; ++i) out[i] = gray_of(in + 3 * i);
  } else {
    for (int64_t i = 0; i < pixels; ++i) {
      out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = in[i];
    }
  }
}

/// Converts a decoded color image to gray in place.
inline void make_gray(Image& image) {
  if (image.channels == 1) return;
  convert_channels(image.pixels.data(), 3, image.pixels.data(), 1,
                   int64_t{image.height} * image.width);
  image.channels = 1;
}

/// Converts a decoded gray image to color in place.
inline void repeat_gray(Image& image) {
  const size_t pixels = static_cast<size_t>(image.height) * static_cast<size_t>(image.width);
  if (image.pixels.size() < 3 * pixels) image.pixels.resize(3 * pixels);
  for (size_t i = pixels; i-- > 0;) {
    const uint8_t gray = image.pixels[i];
    for (size_t c = 0; c < 3; ++c) image.pixels[3 * i + c] = gray;
  }
  image.channels = 3;
}

}  // namespace gallop::data
