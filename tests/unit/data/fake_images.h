#pragma once

#include <algorithm>
#include <atomic>
#include <set>

#include "gallop/base/error.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// Synthetic images: pixel (y, x, c) of image i is a mix of these four numbers. Labels are i %
/// 3.
class FakeImages : public ImageSet {
 public:
  FakeImages(int64_t size, ImageShape shape) : size_(size), shape_(shape) {}

  static uint8_t pixel(int64_t index, int y, int x, int c) {
    return static_cast<uint8_t>(index * 31 + y * 7 + x * 3 + c * 50 + (y * x) % 11);
  }

  int64_t size() const override { return size_; }
  int64_t label(int64_t index) const override { return index % 3; }
  const std::vector<std::string>& class_names() const override { return class_names_; }
  std::string describe(int64_t index) const override { return "item " + std::to_string(index); }

  void read(int64_t index, const DecodeRequest& request, Image& image) const override {
    if (damaged.contains(index)) throw DataError(describe(index) + ": is damaged");
    ++reads;
    image.channels = request.channels == 0 ? shape_.channels : request.channels;
    image.height = shape_.height + static_cast<int>(other_height.contains(index));
    image.width = shape_.width;
    image.pixels.clear();
    for (int y = 0; y < image.height; ++y) {
      for (int x = 0; x < image.width; ++x) {
        for (int c = 0; c < image.channels; ++c) image.pixels.push_back(pixel(index, y, x, c));
      }
    }
  }

  ImageHeader header(int64_t index) const override {
    if (damaged.contains(index)) throw DataError(describe(index) + ": is damaged");
    const int height = shape_.height + static_cast<int>(other_height.contains(index));
    const int channels = other_channels.contains(index) ? 4 - shape_.channels : shape_.channels;
    return {.shape = {height, shape_.width, channels},
            .orientation = turned.contains(index) ? 6 : 1};
  }

  std::string identity() const override { return name; }
  uint64_t stamp(int64_t) const override { return state; }

  std::set<int64_t> damaged, other_height;
  std::set<int64_t> other_channels, turned;  ///< As reported by headers.
  std::string name;                          ///< Identity for sharing.
  uint64_t state = 0;
  mutable std::atomic<int> reads{0};

 private:
  int64_t size_;
  ImageShape shape_;
  std::vector<std::string> class_names_ = {"a", "b", "c"};
};

/// FakeImages that are all decoded in memory.
class FakeStoredImages final : public FakeImages {
 public:
  FakeStoredImages(int64_t size, ImageShape shape) : FakeImages(size, shape), shape_(shape) {
    for (int64_t i = 0; i < size; ++i) {
      Image image;
      FakeImages::read(i, {.channels = shape.channels}, image);
      pixels_.push_back(image.pixels);
    }
  }
  std::optional<ImageShape> stored_shape() const override { return shape_; }
  const uint8_t* stored_pixels(int64_t index) const override {
    return pixels_[static_cast<size_t>(index)].data();
  }

 private:
  ImageShape shape_;
  std::vector<std::vector<uint8_t>> pixels_;
};

}  // namespace gallop::data
