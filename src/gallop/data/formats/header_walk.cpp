#include "gallop/data/formats/header_walk.h"

#include <limits>

#include "gallop/base/error.h"
#include "gallop/data/formats/gif.h"
#include "gallop/data/formats/tiff_directory.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kExif = "Exif\0\0"sv;

uint32_t big_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

uint32_t little_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// The size in the header of a lossy or lossless bitstream, or of the extended format.
ImageShape webp_shape(std::string_view type, std::string_view content) {
  constexpr uint32_t kSide = (1 << 14) - 1;
  uint32_t width = 0, height = 0;
  if (type == "VP8 "sv && content.size() >= 10 && content.substr(3, 3) == "\x9d\x01\x2a"sv) {
    width = little_endian(content, 6, 2) & kSide;
    height = little_endian(content, 8, 2) & kSide;
  } else if (type == "VP8L"sv && content.size() >= 5 && content[0] == '\x2f') {
    const uint32_t sides = little_endian(content, 1, 4);
    width = (sides & kSide) + 1;
    height = (sides >> 14 & kSide) + 1;
  } else if (type == "VP8X"sv && content.size() >= 10) {
    width = little_endian(content, 4, 3) + 1;
    height = little_endian(content, 7, 3) + 1;
  } else {
    throw DataError("damaged WebP: no header at its beginning");
  }
  return {.height = static_cast<int>(height), .width = static_cast<int>(width), .channels = 3};
}

}  // namespace

// Scans the segments up to the frame header, which comes after any Exif segment.
HeaderWalk walk_jpeg(std::string_view bytes) {
  constexpr auto kEndOfImage = 0xD9u, kScan = 0xDAu, kApp1 = 0xE1u, kTemporary = 0x01u;
  HeaderWalk walk;
  for (size_t at = 2;;) {
    // Like libjpeg, skip bytes before a marker and its fill bytes.
    while (at < bytes.size() && bytes[at] != '\xff') ++at;
    while (at < bytes.size() && bytes[at] == '\xff') ++at;
    if (at >= bytes.size()) return walk;
    const auto marker = static_cast<uint8_t>(bytes[at++]);
    const bool stands_alone = (marker >= 0xD0 && marker <= 0xD8) || marker == kTemporary;
    if (marker == 0 || stands_alone) continue;
    if (marker == kScan || marker == kEndOfImage) {
      throw DataError("damaged JPEG: no frame before its data");
    }
    if (bytes.size() - at < 2) return walk;
    const size_t length = big_endian(bytes, at, 2);
    if (length < 2) throw DataError("damaged JPEG: a segment of no length");
    const std::string_view segment = bytes.substr(at + 2, length - 2);
    const bool is_frame =
        marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
    if (is_frame && segment.size() >= 6) {
      walk.header.shape = {.height = static_cast<int>(big_endian(segment, 1, 2)),
                           .width = static_cast<int>(big_endian(segment, 3, 2)),
                           .channels = segment[5] == 1 ? 1 : 3};
      walk.is_complete = true;
      return walk;
    }
    if (segment.size() < length - 2) return walk;
    if (is_frame) throw DataError("damaged JPEG: a frame header that is too short");
    if (marker == kApp1 && segment.starts_with(kExif)) {
      walk.header.orientation = orientation_of(segment.substr(kExif.size()));
    }
    at += length;
  }
}

// Scans the chunks before the image data.
HeaderWalk walk_png(std::string_view bytes) {
  constexpr size_t kSignatureBytes = 8;
  constexpr size_t kChunkBytes = 12;  // Length, type and checksum.
  constexpr uint8_t kColorMask = 2;
  HeaderWalk walk;
  for (size_t at = kSignatureBytes; bytes.size() > at && bytes.size() - at >= 8;) {
    const size_t length = big_endian(bytes, at, 4);
    const std::string_view type = bytes.substr(at + 4, 4);
    const std::string_view content = bytes.substr(at + 8, length);
    const bool is_first = at == kSignatureBytes;
    if (is_first != (type == "IHDR"sv)) throw DataError("damaged PNG: no header at its beginning");
    if (type == "IDAT"sv || type == "IEND"sv) {
      walk.is_complete = true;
      return walk;
    }
    if (content.size() < length) return walk;
    if (is_first) {
      if (length != 13) throw DataError("damaged PNG: a header of another length");
      const uint32_t width = big_endian(content, 0, 4), height = big_endian(content, 4, 4);
      constexpr auto kMost = static_cast<uint32_t>(std::numeric_limits<int>::max());
      if (width > kMost || height > kMost) throw DataError("damaged PNG: a size that is none");
      walk.header.shape = {.height = static_cast<int>(height),
                           .width = static_cast<int>(width),
                           .channels = (content[9] & kColorMask) != 0 ? 3 : 1};
    }
    if (type == "eXIf"sv) walk.header.orientation = orientation_of(content);
    at += length + kChunkBytes;
  }
  return walk;
}

HeaderWalk walk_gif(std::string_view bytes) {
  const GifLayout gif = read_gif_layout(bytes);
  return {.header = {.shape = {.height = gif.height,
                               .width = gif.width,
                               .channels = gif.is_gray() ? 1 : 3}},
          .is_complete = gif.is_complete};
}

// Scans the chunks; Exif comes after the image.
HeaderWalk walk_webp(std::string_view bytes) {
  constexpr size_t kFirstChunk = 12, kChunkHeader = 8, kNeeded = 30;
  constexpr uint8_t kHasExif = 8;
  HeaderWalk walk;
  if (bytes.size() < kNeeded) return walk;
  const size_t end = size_t{little_endian(bytes, 4, 4)} + 8;
  bool has_exif = false;
  for (size_t at = kFirstChunk; at < end;) {
    if (bytes.size() < at + kChunkHeader) return walk;
    const std::string_view type = bytes.substr(at, 4);
    const size_t length = little_endian(bytes, at + 4, 4);
    const std::string_view content = bytes.substr(at + kChunkHeader, length);
    if (at == kFirstChunk) {
      walk.header.shape = webp_shape(type, content);
      has_exif = type == "VP8X"sv && (static_cast<uint8_t>(content[0]) & kHasExif) != 0;
    }
    if (!has_exif) break;
    if (type == "EXIF"sv) {
      if (content.size() < length) return walk;
      const size_t prefix = content.starts_with(kExif) ? kExif.size() : 0;
      walk.header.orientation = orientation_of(content.substr(prefix));
      break;
    }
    at += kChunkHeader + length + length % 2;
  }
  walk.is_complete = true;
  return walk;
}

HeaderWalk walk_tiff(std::string_view start, std::string_view directory) {
  constexpr uint32_t kMinIsWhite = 0, kMinIsBlack = 1;
  constexpr auto kMost = static_cast<uint32_t>(std::numeric_limits<int>::max());
  HeaderWalk walk;
  const auto tiff = read_tiff_start(start);
  if (!tiff) return walk;
  const TiffTags tags = read_tiff_tags(directory, *tiff);
  if (!tags.is_complete) return walk;
  if (tags.width > kMost || tags.height > kMost)
    throw DataError("damaged TIFF: a size that is none");
  const bool is_gray = tags.photometric == kMinIsWhite || tags.photometric == kMinIsBlack;
  walk.header = {.shape = {.height = static_cast<int>(tags.height),
                           .width = static_cast<int>(tags.width),
                           .channels = is_gray ? 1 : 3},
                 .orientation = tags.orientation};
  walk.is_complete = true;
  return walk;
}

}  // namespace gallop::data
