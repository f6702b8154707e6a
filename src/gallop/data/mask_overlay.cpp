#include "gallop/data/mask_overlay.h"

#include <algorithm>
#include <vector>

namespace gallop::data {

namespace {

constexpr int kRgb = 3;
constexpr double kOpacity = 0.6;    // Opacity of a class color over its image.
constexpr double kPaleness = 0.55;  // Fade of the image under differences.
constexpr int kWhite = 255;

constexpr Rgb kColors[] = {{153, 153, 153}, {230, 159, 0}, {86, 180, 233}, {0, 158, 115},
                           {240, 228, 66},  {0, 114, 178}, {213, 94, 0},   {204, 121, 167}};

uint8_t mixed(double one, double other, double share) {
  return static_cast<uint8_t>((1 - share) * one + share * other + 0.5);
}

// Converts to RGB; gray becomes three equal channels.
Image in_color(const Image& image) {
  Image color{.height = image.height, .width = image.width, .channels = kRgb, .pixels = {}};
  const auto pixels = static_cast<size_t>(image.height) * static_cast<size_t>(image.width);
  const auto channels = static_cast<size_t>(image.channels);
  color.pixels.resize(pixels * kRgb);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < kRgb; ++c) {
      color.pixels[i * kRgb + c] = image.pixels[i * channels + std::min(c, channels - 1)];
    }
  }
  return color;
}

void blend(uint8_t* pixel, const Rgb& color, double share) {
  for (size_t c = 0; c < kRgb; ++c) pixel[c] = mixed(pixel[c], color[c], share);
}

uint8_t mean_of(const Image& image, const Region& square, int channel) {
  int sum = 0;
  for (int y = square.top; y < square.top + square.height; ++y) {
    for (int x = square.left; x < square.left + square.width; ++x) {
      const size_t pixel =
          static_cast<size_t>(y) * static_cast<size_t>(image.width) + static_cast<size_t>(x);
      sum +=
          image.pixels[pixel * static_cast<size_t>(image.channels) + static_cast<size_t>(channel)];
    }
  }
  const int count = square.height * square.width;
  return static_cast<uint8_t>((sum + count / 2) / count);
}

}  // namespace

Rgb class_color(size_t label) {
  constexpr size_t kCount = std::size(kColors);
  constexpr double kShade = 0.5;
  Rgb color = kColors[label % kCount];
  const size_t shade = label / kCount % 3;
  for (uint8_t& channel : color) {
    if (shade > 0) channel = mixed(channel, shade == 1 ? kWhite : 0, kShade);
  }
  return color;
}

Image overlay_classes(const Image& image, std::span<const int64_t> labels) {
  Image drawn = in_color(image);
  for (size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0) continue;
    blend(&drawn.pixels[i * kRgb], class_color(static_cast<size_t>(labels[i])), kOpacity);
  }
  return drawn;
}

Image overlay_differences(const Image& image, std::span<const int64_t> predicted,
                          std::span<const int64_t> truth) {
  Image drawn = in_color(image);
  for (size_t i = 0; i < truth.size(); ++i) {
    uint8_t* const pixel = &drawn.pixels[i * kRgb];
    const bool is_wrong = truth[i] >= 0 && truth[i] != predicted[i];
    const auto gray = static_cast<uint8_t>((pixel[0] + 2 * pixel[1] + pixel[2]) / 4);
    std::fill_n(pixel, kRgb, mixed(gray, kWhite, kPaleness));
    if (is_wrong) std::copy(kDifferenceColor.begin(), kDifferenceColor.end(), pixel);
  }
  return drawn;
}

std::optional<double> image_iou(std::span<const int64_t> predicted, std::span<const int64_t> truth,
                                size_t classes) {
  std::vector<int64_t> both(classes), either(classes);
  for (size_t i = 0; i < truth.size(); ++i) {
    if (truth[i] < 0) continue;
    const auto guess = static_cast<size_t>(predicted[i]), label = static_cast<size_t>(truth[i]);
    ++either[label];
    ++(guess == label ? both : either)[guess];
  }
  double sum = 0;
  int64_t count = 0;
  for (size_t label = 0; label < classes; ++label) {
    if (either[label] == 0) continue;
    sum += static_cast<double>(both[label]) / static_cast<double>(either[label]);
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

Image reduced_image(const Image& image, int most) {
  const int side = (std::max(image.height, image.width) + most - 1) / most;
  if (side <= 1) return image;
  Image small{.height = std::max(1, image.height / side),
              .width = std::max(1, image.width / side),
              .channels = image.channels,
              .pixels = {}};
  for (int y = 0; y < small.height; ++y) {
    for (int x = 0; x < small.width; ++x) {
      const Region square{.top = y * side,
                          .left = x * side,
                          .height = std::min(side, image.height - y * side),
                          .width = std::min(side, image.width - x * side)};
      for (int c = 0; c < image.channels; ++c) small.pixels.push_back(mean_of(image, square, c));
    }
  }
  return small;
}

}  // namespace gallop::data
