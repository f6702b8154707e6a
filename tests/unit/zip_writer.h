#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <libdeflate.h>

namespace gallop {

struct ZipFile {
  std::string name, content;
};

/// Writes zip archives of stored entries, as torch does with `sizes_follow`.
struct ZipWriter {
  bool sizes_follow = true;  ///< Sizes and CRC-32 are in the directory alone.
  bool zip64 = false;        ///< Everything that may be in zip64 records is.
  size_t alignment = 64;

  static void put(std::string& to, uint64_t value, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i));
  }

  /// The fields from the flags to the size that both headers have.
  void put_common(std::string& to, const ZipFile& file, bool is_local) const {
    const bool hidden = is_local && sizes_follow;
    const uint64_t size = zip64 && !hidden ? 0xffffffff : file.content.size();
    put(to, sizes_follow ? 0x808 : 0x800, 2);
    put(to, 0, 2 + 4);
    put(to, hidden ? 0 : libdeflate_crc32(0, file.content.data(), file.content.size()), 4);
    put(to, hidden ? 0 : size, 4);
    put(to, hidden ? 0 : size, 4);
    put(to, file.name.size(), 2);
  }

  std::string write(const std::vector<ZipFile>& files, std::string_view comment = "") const {
    std::string zip, directory;
    for (const ZipFile& file : files) {
      const size_t at = zip.size();
      put(zip, 0x04034b50, 4);
      put(zip, 45, 2);
      put_common(zip, file, true);
      const size_t end = zip.size() + 2 + file.name.size() + 4;
      const size_t padding = (alignment - end % alignment) % alignment;
      put(zip, 4 + padding, 2);
      zip += file.name;
      put(zip, 0x4246, 2);
      put(zip, padding, 2);
      zip += std::string(padding, 'Z') + file.content;

      put(directory, 0x02014b50, 4);
      put(directory, 45, 2);
      put(directory, 45, 2);
      put_common(directory, file, false);
      put(directory, zip64 ? 4 + 3 * 8 : 0, 2);
      put(directory, 0, 2 + 2 + 2 + 4);
      put(directory, zip64 ? 0xffffffff : at, 4);
      directory += file.name;
      if (zip64) {
        put(directory, 1, 2);
        put(directory, 3 * 8, 2);
        put(directory, file.content.size(), 8);
        put(directory, file.content.size(), 8);
        put(directory, at, 8);
      }
    }
    const size_t begin = zip.size();
    zip += directory;
    if (zip64) {
      const size_t record = zip.size();
      put(zip, 0x06064b50, 4);
      put(zip, 44, 8);
      put(zip, 45, 2);
      put(zip, 45, 2);
      put(zip, 0, 4 + 4);
      put(zip, files.size(), 8);
      put(zip, files.size(), 8);
      put(zip, directory.size(), 8);
      put(zip, begin, 8);
      put(zip, 0x07064b50, 4);
      put(zip, 0, 4);
      put(zip, record, 8);
      put(zip, 1, 4);
    }
    put(zip, 0x06054b50, 4);
    put(zip, 0, 4);
    put(zip, zip64 ? 0xffff : files.size(), 2);
    put(zip, zip64 ? 0xffff : files.size(), 2);
    put(zip, zip64 ? 0xffffffff : directory.size(), 4);
    put(zip, zip64 ? 0xffffffff : begin, 4);
    put(zip, comment.size(), 2);
    return zip + std::string(comment);
  }
};

/// Replaces the little-endian number at a position.
inline void set_number(std::string& bytes, size_t at, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace gallop
