#pragma once

#include <string_view>

#include "gallop/data/image.h"

namespace gallop::data {

/// Decodes a WebP file, of an animation the first image, by libwebp.
void decode_webp(std::string_view file, const DecodeRequest& request, Image& image);

}  // namespace gallop::data
