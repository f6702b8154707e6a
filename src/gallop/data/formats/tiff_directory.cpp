#include "gallop/data/formats/tiff_directory.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

constexpr uint64_t kShort = 3, kLong = 4, kLong8 = 16;

// 0 beyond the end of the bytes.
uint64_t number_at(std::string_view bytes, bool is_little, size_t at, size_t count) {
  if (at > bytes.size() || count > bytes.size() - at) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t byte = is_little ? count - 1 - i : i;
    value = value << 8 | static_cast<uint8_t>(bytes[at + byte]);
  }
  return value;
}

// The value of an entry with one whole number.
std::optional<uint32_t> value_of(std::string_view entry, const TiffStart& start) {
  const uint64_t type = number_at(entry, start.is_little, 2, 2);
  const size_t bytes = type == kShort ? 2 : type == kLong ? 4 : type == kLong8 ? 8 : 0;
  const size_t at = start.is_big ? 12 : 8;
  if (bytes == 0 || entry.size() < at + bytes) return std::nullopt;
  const uint64_t value = number_at(entry, start.is_little, at, bytes);
  if (value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(value);
}

// If a tag is repeated, its first value counts.
void take(uint64_t tag, uint32_t value, TiffTags& tags) {
  constexpr uint64_t kWidth = 256, kHeight = 257, kPhotometric = 262, kOrientation = 274;
  if (tag == kWidth && tags.width == 0) tags.width = value;
  if (tag == kHeight && tags.height == 0) tags.height = value;
  if (tag == kPhotometric && !tags.photometric) tags.photometric = value;
  if (tag == kOrientation && tags.orientation == 1 && value >= 1 && value <= 8) {
    tags.orientation = static_cast<int>(value);
  }
}

}  // namespace

std::optional<TiffStart> read_tiff_start(std::string_view bytes) {
  constexpr uint64_t kClassic = 42, kBig = 43;
  TiffStart start{.is_little = bytes.starts_with("II"sv)};
  if (!start.is_little && !bytes.starts_with("MM"sv)) return std::nullopt;
  const uint64_t version = number_at(bytes, start.is_little, 2, 2);
  start.is_big = version == kBig;
  if (version != kClassic && !start.is_big) return std::nullopt;
  if (bytes.size() < (start.is_big ? size_t{16} : size_t{8})) return std::nullopt;
  start.directory = start.is_big ? number_at(bytes, start.is_little, 8, 8)
                                 : number_at(bytes, start.is_little, 4, 4);
  return start;
}

TiffTags read_tiff_tags(std::string_view bytes, const TiffStart& start) {
  const size_t count_bytes = start.is_big ? 8 : 2, entry_bytes = start.is_big ? 20 : 12;
  TiffTags tags;
  if (bytes.size() < count_bytes) return tags;
  uint64_t entries = number_at(bytes, start.is_little, 0, count_bytes);
  for (bytes.remove_prefix(count_bytes); entries > 0; --entries) {
    if (bytes.empty()) return tags;
    const std::string_view entry = bytes.substr(0, entry_bytes);
    const uint64_t tag = number_at(entry, start.is_little, 0, 2);
    const std::optional<uint32_t> value = value_of(entry, start);
    if (value) take(tag, *value, tags);
    if (entry.size() < entry_bytes) return tags;
    bytes.remove_prefix(entry_bytes);
  }
  tags.is_complete = true;
  return tags;
}

int orientation_of(std::string_view exif) {
  const std::optional<TiffStart> start = read_tiff_start(exif);
  if (!start || start->directory > exif.size()) return 1;
  return read_tiff_tags(exif.substr(start->directory), *start).orientation;
}

}  // namespace gallop::data
