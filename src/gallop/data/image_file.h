#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// Image files longer than this are rejected.
inline constexpr int64_t kMaxImageFileBytes = int64_t{1} << 30;

/// Whether a file name ends in .jpg, .jpeg or .png, in any case of letters.
bool has_image_ending(std::string_view name);

/// Whether a file name ends like that of an image of an unsupported format (.webp, .bmp, .tif,
/// .jfif, ...).
bool is_unread_image(std::string_view name);

/// Reads a whole file into a buffer that is reused and only grows, and returns its content. Throws
/// DataError with the system's reason, without a name, also if the file is too long.
std::string_view read_image_file(const FileDescriptor& file, std::vector<char>& buffer);

/// Grows a reused buffer to at least this size.
void reserve_bytes(std::vector<char>& buffer, size_t bytes);

}  // namespace gallop::data
