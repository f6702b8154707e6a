#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gallop/data/image.h"

namespace gallop::data {

/// Decoder of the first image of TIFF files, on libtiff: gray, palettes, RGB and CMYK of up to 16
/// bits per sample, and YCbCr, in strips or tiles.
class TiffDecoder {
 public:
  void decode(std::string_view file, const DecodeRequest& request, Image& image);

 private:
  std::vector<uint8_t> block_;    // A decompressed strip or tile.
  std::vector<uint8_t> samples_;  // Samples of the whole image, 8 bits each.
};

}  // namespace gallop::data
