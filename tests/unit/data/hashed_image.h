#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// An image as tests/parity/make_pixel_fixtures.py makes it: noise, a gradient with some noise, or
/// noise of little contrast, by its number.
inline std::vector<uint8_t> hashed_image(int number, const ImageShape& shape) {
  std::vector<uint8_t> values;
  uint32_t index = 1 + 1'000'003 * static_cast<uint32_t>(number);
  for (int y = 0; y < shape.height; ++y) {
    for (int x = 0; x < shape.width; ++x) {
      for (int c = 0; c < shape.channels; ++c) {
        uint32_t hash = index++ * 0x9E3779B1U;
        hash = (hash ^ (hash >> 15U)) * 0x85EBCA77U;
        const auto noise = static_cast<int>((hash ^ (hash >> 13U)) & 255U);
        const int value = number % 3 == 0   ? noise
                          : number % 3 == 1 ? 3 * y + 2 * x + 40 * c + (noise & 15)
                                            : 60 + 20 * c + (noise & 63);
        values.push_back(static_cast<uint8_t>(value));
      }
    }
  }
  return values;
}

}  // namespace gallop::data
