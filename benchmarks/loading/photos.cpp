#include "photos.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <turbojpeg.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/philox.h"

namespace gallop::benchmark {

namespace {

constexpr int kWidth = 500;
constexpr int kHeight = 375;
constexpr int kQuality = 90;
constexpr int kClasses = 10;

/// Random values on a grid, with smooth curves between them.
class Noise {
 public:
  Noise(Philox& random, int cell) : cell_(cell), columns_(kWidth / cell + 2) {
    values_.resize(static_cast<size_t>(columns_) * static_cast<size_t>(kHeight / cell + 2));
    for (auto& value : values_) value = random.uniform() - 0.5f;
  }

  float at(int y, int x) const {
    const float fy = smooth(y), fx = smooth(x);
    const float* row = &values_[static_cast<size_t>(y / cell_ * columns_ + x / cell_)];
    const float* next = row + columns_;
    return std::lerp(std::lerp(row[0], row[1], fx), std::lerp(next[0], next[1], fx), fy);
  }

 private:
  float smooth(int at) const {
    const float t = static_cast<float>(at % cell_) / static_cast<float>(cell_);
    return t * t * (3 - 2 * t);
  }

  int cell_;
  int columns_;
  std::vector<float> values_;
};

std::vector<uint8_t> paint(uint64_t number) {
  Philox random(number, Purpose::kSample, 0, 0);
  std::vector<Noise> shapes, colors;
  std::vector<float> heights;
  for (const int cell : {250, 120, 60, 30, 15, 8, 4, 2}) {
    shapes.emplace_back(random, cell);
    heights.push_back(200.0f * std::pow(static_cast<float>(cell) / 250, 0.55f));
  }
  for (int i = 0; i < 3; ++i) colors.emplace_back(random, 100);

  std::vector<uint8_t> pixels;
  pixels.reserve(size_t{kWidth} * kHeight * 3);
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      float light = 128;
      for (size_t i = 0; i < shapes.size(); ++i) light += heights[i] * shapes[i].at(y, x);
      // A sign change of a smooth field is the edge of an object.
      if (shapes[1].at(y, x) > 0.02f) light = 255 - 0.8f * light;
      light += 14 * (random.uniform() - 0.5f);
      for (const auto& color : colors) {
        pixels.push_back(
            static_cast<uint8_t>(std::clamp(light + 90 * color.at(y, x), 0.0f, 255.0f)));
      }
    }
  }
  return pixels;
}

}  // namespace

void make_photos(const std::string& folder, int64_t count) {
  const std::unique_ptr<void, int (*)(void*)> encoder(tjInitCompress(), tjDestroy);
  std::vector<uint8_t> file(tjBufSize(kWidth, kHeight, TJSAMP_420));
  for (int64_t i = 0; i < count; ++i) {
    const auto pixels = paint(static_cast<uint64_t>(i));
    auto* bytes = file.data();
    unsigned long size = file.size();  // NOLINT(google-runtime-int): the library's type
    if (tjCompress2(encoder.get(), pixels.data(), kWidth, 0, kHeight, TJPF_RGB, &bytes, &size,
                    TJSAMP_420, kQuality, TJFLAG_NOREALLOC) != 0) {
      throw InternalError(tjGetErrorStr2(encoder.get()));
    }
    const fs::path path = fs::path(folder) / "train" / fmt::format("class{}", i % kClasses);
    make_folders(path);
    write_file_atomically(path / fmt::format("{:05}.jpg", i),
                          {reinterpret_cast<const char*>(bytes), size});
  }
}

}  // namespace gallop::benchmark
