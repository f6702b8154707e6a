#pragma once

#include <vector>

#include "gallop/data/pixels/operations.h"

namespace gallop::data::pixels {

/// The weights [height, width] of torchvision's gaussian_blur, with the rounding of torch on CPUs
/// with AVX-512.
std::vector<float> gaussian_kernel(const GaussianBlur& blur);

}  // namespace gallop::data::pixels
