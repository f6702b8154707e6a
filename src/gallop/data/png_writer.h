#pragma once

#include <string>

#include "gallop/data/image.h"

namespace gallop::data {

/// The content of a PNG file, of an image of 1 or 3 channels. Throws InternalError for another one.
std::string encode_png(const Image& image);

}  // namespace gallop::data
