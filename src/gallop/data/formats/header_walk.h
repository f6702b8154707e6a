#pragma once

#include <string_view>

#include "gallop/data/image.h"

namespace gallop::data {

/// The header of an image as far as it is contained in the first bytes of the file. Each function
/// throws DataError if the file is damaged.
struct HeaderWalk {
  ImageHeader header;        ///< As stored, with the EXIF orientation beside it.
  bool is_complete = false;  ///< Whether the bytes suffice.
};

HeaderWalk walk_jpeg(std::string_view bytes);
HeaderWalk walk_png(std::string_view bytes);
HeaderWalk walk_gif(std::string_view bytes);
HeaderWalk walk_webp(std::string_view bytes);

/// `directory`: bytes from the first directory on, at TiffStart::directory.
HeaderWalk walk_tiff(std::string_view start, std::string_view directory);

}  // namespace gallop::data
