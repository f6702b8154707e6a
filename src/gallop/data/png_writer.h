#pragma once

#include <string>

#include "gallop/data/image.h"

namespace gallop::data {

/// Encodes an image of 1 or 3 channels as PNG. Throws InternalError for other channel counts.
std::string encode_png(const Image& image);

}  // namespace gallop::data
