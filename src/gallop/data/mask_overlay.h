#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gallop/data/image.h"

namespace gallop::data {

using Rgb = std::array<uint8_t, 3>;

/// The color of a class in overlays. The first eight, those of Okabe and Ito (2008) with gray in
/// place of black, can be distinguished with any color vision; the next ones are lighter, then
/// darker shades of them. From the 25th class on colors repeat.
Rgb class_color(size_t label);

/// That of pixels whose prediction is wrong.
inline constexpr Rgb kDifferenceColor = {216, 27, 96};

/// An RGB image with the color of its class blended over each pixel. `labels`: [H * W] in the order
/// of the pixels; those that are negative, as kIgnoredTarget, stay as they are.
Image overlay_classes(const Image& image, std::span<const int64_t> labels);

/// An RGB image, pale and gray, with kDifferenceColor where a pixel counts (`truth` is not
/// negative) and is predicted as another class. Both are [H * W].
Image overlay_differences(const Image& image, std::span<const int64_t> predicted,
                          std::span<const int64_t> truth);

/// Mean of the intersection over union (Jaccard index) of the classes in either mask of one image,
/// over the pixels that count. Nothing where none does.
std::optional<double> image_iou(std::span<const int64_t> predicted, std::span<const int64_t> truth,
                                size_t classes);

/// The image with at most `most` pixels a side: means of squares of equal size; at the right and at
/// the bottom less than a square is cut off.
Image reduced_image(const Image& image, int most);

}  // namespace gallop::data
