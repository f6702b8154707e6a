#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// Parses the header of an image file as stored; nullopt if more of the file is needed.
/// `file_bytes` is the length of the whole file. Throws DataError, without the file's name, if the
/// file is damaged or of another format.
std::optional<ImageHeader> parse_image_header(std::string_view start, int64_t file_bytes);

/// Like parse_image_header(), reading no more of the `bytes` bytes at `offset` than necessary.
/// `path` is for errors of reading.
ImageHeader read_image_header(const FileDescriptor& file, const fs::path& path, int64_t offset,
                              int64_t bytes, std::vector<char>& buffer);

/// The header with and without the EXIF orientation applied.
ImageHeader oriented(ImageHeader header);
ImageHeader stored(ImageHeader header);

/// The EXIF orientation of a whole image file, 1 to 8; 1 if it is missing or invalid.
int exif_orientation(std::string_view file);

}  // namespace gallop::data
