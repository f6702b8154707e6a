#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "gallop/data/image.h"

namespace gallop::data {

using Rgb = std::array<uint8_t, 3>;

/// The color of a class in overlays. The first eight are those of Okabe and Ito (2008), with gray
/// instead of black, and can be distinguished with any color vision; the next are lighter, then
/// darker shades of them. Colors repeat from the 25th class on.
Rgb class_color(size_t label);

/// The color of pixels whose prediction is wrong.
inline constexpr Rgb kDifferenceColor = {216, 27, 96};

/// Returns an RGB image with the color of its class blended over each pixel. `labels` is [H * W] in
/// pixel order; pixels with negative labels, such as kIgnoredTarget, are unchanged.
Image overlay_classes(const Image& image, std::span<const int64_t> labels);

/// Returns a pale gray RGB image with kDifferenceColor at each pixel that counts (`truth` is not
/// negative) and whose prediction is wrong. Both spans are [H * W].
Image overlay_differences(const Image& image, std::span<const int64_t> predicted,
                          std::span<const int64_t> truth);

/// Mean intersection over union (Jaccard index) of one image over the classes that occur in either
/// mask. Ignored pixels do not count; nullopt if none count.
std::optional<double> image_iou(std::span<const int64_t> predicted, std::span<const int64_t> truth,
                                size_t classes);

/// Downscales the image to at most `most` pixels per side by averaging squares of equal size. An
/// incomplete square at the right and bottom edge is cropped.
Image reduced_image(const Image& image, int most);

}  // namespace gallop::data
