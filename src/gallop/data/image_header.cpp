#include "gallop/data/image_header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view kPngSignature = "\x89PNG\r\n\x1a\n"sv;

uint32_t big_endian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<uint8_t>(bytes[at + i]);
  return value;
}

// Reads integers from a TIFF structure, which declares its byte order; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::string_view bytes) : bytes_(bytes), is_little_(bytes.starts_with("II"sv)) {}

  uint32_t number(size_t at, size_t count) const {
    if (at > bytes_.size() || count > bytes_.size() - at) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      const size_t byte = is_little_ ? count - 1 - i : i;
      value = value << 8 | static_cast<uint8_t>(bytes_[at + byte]);
    }
    return value;
  }

  // The orientation tag of the first directory (Exif 2.3).
  int orientation() const {
    constexpr uint32_t kMagic = 42, kOrientation = 0x0112, kShort = 3, kLong = 4;
    constexpr size_t kEntryBytes = 12;
    if ((!is_little_ && !bytes_.starts_with("MM"sv)) || number(2, 2) != kMagic) return 1;
    const size_t directory = number(4, 4);
    const size_t entries = number(directory, 2);
    for (size_t i = 0; i < entries; ++i) {
      const size_t entry = directory + 2 + i * kEntryBytes;
      if (entry >= bytes_.size()) return 1;
      if (number(entry, 2) != kOrientation) continue;
      const uint32_t type = number(entry + 2, 2);
      if (type != kShort && type != kLong) return 1;
      const uint32_t value = number(entry + 8, type == kShort ? 2 : 4);
      return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
    }
    return 1;
  }

 private:
  std::string_view bytes_;
  bool is_little_;
};

// The result of a scan of a file: complete, or truncated by the end of the bytes.
struct Walk {
  ImageHeader header;
  bool is_complete = false;
};

// Scans the segments up to the frame header, which comes after any Exif segment.
Walk walk_jpeg(std::string_view bytes) {
  constexpr auto kEndOfImage = 0xD9u, kScan = 0xDAu, kApp1 = 0xE1u, kTemporary = 0x01u;
  constexpr std::string_view kExif = "Exif\0\0"sv;
  Walk walk;
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
      walk.header.orientation = Tiff(segment.substr(kExif.size())).orientation();
    }
    at += length;
  }
}

// Scans the chunks before the image data.
Walk walk_png(std::string_view bytes) {
  constexpr size_t kChunkBytes = 12;  // Length, type and checksum.
  constexpr uint8_t kColorMask = 2;
  Walk walk;
  for (size_t at = kPngSignature.size(); bytes.size() > at && bytes.size() - at >= 8;) {
    const size_t length = big_endian(bytes, at, 4);
    const std::string_view type = bytes.substr(at + 4, 4);
    const std::string_view content = bytes.substr(at + 8, length);
    const bool is_first = at == kPngSignature.size();
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
    if (type == "eXIf"sv) walk.header.orientation = Tiff(content).orientation();
    at += length + kChunkBytes;
  }
  return walk;
}

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"sv); }
bool is_png(std::string_view bytes) { return bytes.starts_with(kPngSignature); }

}  // namespace

std::optional<ImageHeader> parse_image_header(std::string_view start, int64_t file_bytes) {
  if (!is_jpeg(start) && !is_png(start)) refuse_format(start);
  const Walk walk = is_jpeg(start) ? walk_jpeg(start) : walk_png(start);
  if (!walk.is_complete) {
    if (static_cast<int64_t>(start.size()) < file_bytes) return std::nullopt;
    throw DataError(
        fmt::format("damaged {}: the file ends in its header", is_jpeg(start) ? "JPEG" : "PNG"));
  }
  const ImageShape& shape = walk.header.shape;
  check_image_size(shape.height, shape.width, file_bytes, kMaxPixels);
  return walk.header;
}

ImageHeader read_image_header(const FileDescriptor& file, int64_t offset, int64_t bytes,
                              std::vector<char>& buffer) {
  constexpr int64_t kFirstRead = 1 << 12, kGrowth = 16;
  for (int64_t wanted = std::min(bytes, kFirstRead);; wanted = std::min(bytes, wanted * kGrowth)) {
    reserve_bytes(buffer, static_cast<size_t>(wanted));
    if (!read_exactly(file, {}, offset, buffer.data(), wanted)) {
      throw DataError("the file became shorter after the start");
    }
    const auto header = parse_image_header({buffer.data(), static_cast<size_t>(wanted)}, bytes);
    if (header) return *header;
  }
}

ImageHeader oriented(ImageHeader header) {
  constexpr int kFirstTransposed = 5;
  if (header.orientation >= kFirstTransposed) std::swap(header.shape.height, header.shape.width);
  return header;
}

ImageHeader stored(ImageHeader header) {
  header.orientation = 1;
  return header;
}

int exif_orientation(std::string_view file) {
  try {
    if (is_jpeg(file)) return walk_jpeg(file).header.orientation;
    if (is_png(file)) return walk_png(file).header.orientation;
  } catch (const DataError&) {
    // The decoder reports what is wrong with the file.
  }
  return 1;
}

// The default for a set without headers: decodes the image.
ImageHeader ImageSet::header(int64_t index) const {
  Image image;
  read(index, {.channels = 0}, image);
  return {.shape = {image.height, image.width, image.channels}};
}

}  // namespace gallop::data
