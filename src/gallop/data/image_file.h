#pragma once

#include <string_view>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// Image files longer than this are rejected.
inline constexpr int64_t kMaxImageFileBytes = int64_t{1} << 30;

/// Reads a whole file into a reused buffer that only grows, and returns its content. Throws
/// DataError without a file name, also if the file is too long or a folder, and DeviceError that
/// names `path`.
std::string_view read_image_file(const FileDescriptor& file, const fs::path& path,
                                 std::vector<char>& buffer);

/// Grows a reused buffer to at least `bytes` bytes.
void reserve_bytes(std::vector<char>& buffer, size_t bytes);

}  // namespace gallop::data
