#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// What the beginning of a JPEG or PNG file says of its pixels as they are stored; empty where more
/// of the file is needed for that. `file_bytes` is how long the whole file is. Throws DataError,
/// without the file's name, where the file is damaged or of another format.
std::optional<ImageHeader> parse_image_header(std::string_view start, int64_t file_bytes);

/// The same of `bytes` bytes at `offset`, of which no more is read than that takes.
ImageHeader read_image_header(const FileDescriptor& file, int64_t offset, int64_t bytes,
                              std::vector<char>& buffer);

/// A header of stored pixels as they are to be seen, and as they are seen where the orientation is
/// ignored.
ImageHeader oriented(ImageHeader header);
ImageHeader stored(ImageHeader header);

/// The EXIF orientation of a whole JPEG or PNG file, 1 to 8; 1 where it has none or a damaged one.
int exif_orientation(std::string_view file);

}  // namespace gallop::data
