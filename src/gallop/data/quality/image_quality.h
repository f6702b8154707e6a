#pragma once

#include <array>

#include "gallop/data/image.h"
#include "gallop/data/quality/data_quality.h"

namespace gallop::data {

/// Decodes all images and looks for damaged files, duplicates within and across splits, outliers in
/// size, aspect ratio and brightness, uniform images, and classes out of balance. The result does
/// not depend on the number of threads. `splits` are in the order of Part; null: there is none.
DataQuality check_images(const std::array<const ImageSet*, kParts>& splits, int threads);

/// An image reduced to at most `longest` pixels; smaller ones are unchanged.
Image thumbnail_of(const Image& image, int longest);

}  // namespace gallop::data
