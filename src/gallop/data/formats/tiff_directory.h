#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace gallop::data {

/// The first bytes of a TIFF or BigTIFF structure, as in TIFF files and in Exif.
struct TiffStart {
  bool is_little = true;   ///< The order of bytes.
  bool is_big = false;     ///< BigTIFF: offsets and counts of 64 bits.
  uint64_t directory = 0;  ///< The offset of the first directory.
};

/// What is needed to show an image; 0 for a tag that is missing or not a whole number.
struct TiffTags {
  uint32_t width = 0, height = 0;
  std::optional<uint32_t> photometric{};
  int orientation = 1;       ///< 1 to 8
  bool is_complete = false;  ///< Whether the bytes contain the whole directory.
};

/// Bytes that contain a TiffStart.
inline constexpr size_t kTiffStartBytes = 16;

/// Nothing if the bytes do not begin with a TIFF structure, or end in it.
std::optional<TiffStart> read_tiff_start(std::string_view bytes);

/// `bytes` begin with the directory.
TiffTags read_tiff_tags(std::string_view bytes, const TiffStart& start);

/// The orientation of an Exif structure, 1 to 8; 1 if it is missing or damaged.
int orientation_of(std::string_view exif);

}  // namespace gallop::data
