#include "gallop/data/mask_overlay.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/data/text_samples.h"

namespace gallop::data {
namespace {

using Labels = std::vector<int64_t>;

Image gray_image(int height, int width, uint8_t value) {
  return {.height = height,
          .width = width,
          .channels = 1,
          .pixels = std::vector<uint8_t>(static_cast<size_t>(height * width), value)};
}

Rgb pixel(const Image& image, size_t index) {
  const uint8_t* const at = &image.pixels[3 * index];
  return {at[0], at[1], at[2]};
}

TEST(MaskOverlay, HasAColorForEachOf24Classes) {
  std::set<Rgb> colors;
  for (size_t label = 0; label < 24; ++label) colors.insert(class_color(label));
  EXPECT_EQ(colors.size(), 24);
  EXPECT_FALSE(colors.contains(kDifferenceColor));
  EXPECT_EQ(class_color(24), class_color(0));
}

TEST(MaskOverlay, BlendsClassesOverCountedPixels) {
  const Image drawn = overlay_classes(gray_image(1, 3, 100), Labels{0, 1, kIgnoredTarget});
  EXPECT_EQ(drawn.channels, 3);
  EXPECT_EQ(pixel(drawn, 0), (Rgb{132, 132, 132}));  // 0.4 * 100 + 0.6 * 153
  EXPECT_EQ(pixel(drawn, 1), (Rgb{178, 135, 40}));
  EXPECT_EQ(pixel(drawn, 2), (Rgb{100, 100, 100}));
  Image color{.height = 1, .width = 1, .channels = 3, .pixels = {200, 100, 0}};
  EXPECT_EQ(pixel(overlay_classes(color, Labels{-1}), 0), (Rgb{200, 100, 0}));
}

TEST(MaskOverlay, MarksCountedPixelsThatDiffer) {
  const Image drawn =
      overlay_differences(gray_image(1, 3, 100), Labels{0, 1, 1}, Labels{0, 0, kIgnoredTarget});
  EXPECT_EQ(pixel(drawn, 0), (Rgb{185, 185, 185}));  // 0.45 * 100 + 0.55 * 255
  EXPECT_EQ(pixel(drawn, 1), kDifferenceColor);
  EXPECT_EQ(pixel(drawn, 2), (Rgb{185, 185, 185}));
}

TEST(MaskOverlay, MeasuresAnImageByTheClassesInEitherMask) {
  EXPECT_EQ(image_iou(Labels{0, 0, 1, 1}, Labels{0, 0, 1, 1}, 3), 1.0);
  // Class 0: 1 of 2; class 1: 1 of 3; class 2: 0 of 1; class 3 is in neither.
  EXPECT_DOUBLE_EQ(*image_iou(Labels{0, 1, 1, 1}, Labels{0, 0, 1, 2}, 4), (0.5 + 1.0 / 3) / 3);
  EXPECT_EQ(image_iou(Labels{0, 1}, Labels{0, kIgnoredTarget}, 2), 1.0);
  EXPECT_FALSE(image_iou(Labels{0, 1}, Labels{kIgnoredTarget, kIgnoredTarget}, 2));
}

TEST(MaskOverlay, ReducesLargeImagesByMeansOfSquares) {
  Image image{.height = 2, .width = 5, .channels = 1, .pixels = {0, 2, 10, 10, 9, 4, 2, 10, 14, 9}};
  const Image small = reduced_image(image, 3);
  EXPECT_EQ(small.height, 1);
  EXPECT_EQ(small.width, 2);
  EXPECT_EQ(small.pixels, (std::vector<uint8_t>{2, 11}));
  EXPECT_EQ(reduced_image(image, 5).pixels, image.pixels);
  EXPECT_EQ(reduced_image(gray_image(1, 100, 7), 10).pixels, std::vector<uint8_t>(10, 7));
}

}  // namespace
}  // namespace gallop::data
