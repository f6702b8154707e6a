#include "gallop/data/quality/perceptual_hash.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gallop/data/channels.h"
#include "gallop/data/resize.h"

namespace gallop::data {

namespace {

constexpr size_t kLow = 8;  // Rows and columns of the lowest coefficients.
constexpr size_t kSide = kHashedSide;

using Cosines = std::array<std::array<double, kSide>, kLow>;
using Lowest = std::array<double, kLow * kLow>;

Cosines make_cosines() {
  Cosines cosines{};
  for (size_t k = 0; k < kLow; ++k) {
    for (size_t i = 0; i < kSide; ++i) {
      const auto angle = static_cast<double>(k * (2 * i + 1)) / (2 * kHashedSide);
      cosines[k][i] = 2 * std::cos(std::numbers::pi * angle);
    }
  }
  return cosines;
}

}  // namespace

HashedPixels hashed_pixels(const Image& image) {
  const size_t count = static_cast<size_t>(image.height) * static_cast<size_t>(image.width);
  std::vector<uint8_t> gray;
  const uint8_t* pixels = image.pixels.data();
  if (image.channels == 3) {
    gray.resize(count);
    convert_channels(pixels, 3, gray.data(), 1, static_cast<int64_t>(count));
    pixels = gray.data();
  }
  HashedPixels out{};
  if (image.height == kHashedSide && image.width == kHashedSide) {
    std::copy_n(pixels, out.size(), out.begin());
    return out;
  }
  Resizer resizer;
  resizer.resize({.pixels = pixels, .height = image.height, .width = image.width, .channels = 1},
                 {.top = 0,
                  .left = 0,
                  .height = static_cast<double>(image.height),
                  .width = static_cast<double>(image.width)},
                 kHashedSide, kHashedSide, out.data());
  return out;
}

HashedPixels mirror(const HashedPixels& gray) {
  HashedPixels mirrored = gray;
  for (auto row = mirrored.begin(); row != mirrored.end(); row += kHashedSide) {
    std::reverse(row, row + kHashedSide);
  }
  return mirrored;
}

uint64_t perceptual_hash(const HashedPixels& gray) {
  static const Cosines kCosines = make_cosines();
  Cosines columns{};  // Transformed vertically.
  for (size_t k = 0; k < kLow; ++k) {
    for (size_t y = 0; y < kSide; ++y) {
      for (size_t x = 0; x < kSide; ++x) columns[k][x] += kCosines[k][y] * gray[y * kSide + x];
    }
  }
  Lowest low{};
  for (size_t r = 0; r < kLow; ++r) {
    for (size_t c = 0; c < kLow; ++c) {
      double sum = 0;
      for (size_t x = 0; x < kSide; ++x) sum += kCosines[c][x] * columns[r][x];
      low[r * kLow + c] = sum;
    }
  }
  Lowest sorted = low;
  std::sort(sorted.begin(), sorted.end());
  const double median = (sorted[kLow * kLow / 2 - 1] + sorted[kLow * kLow / 2]) / 2;
  uint64_t hash = 0;
  for (size_t i = 0; i < low.size(); ++i) hash |= uint64_t{low[i] > median} << i;
  return hash;
}

}  // namespace gallop::data
