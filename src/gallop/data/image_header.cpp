#include "gallop/data/image_header.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/formats/header_walk.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/formats/tiff_directory.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_file.h"

namespace gallop::data {

namespace {

HeaderWalk walk(ImageFormat format, std::string_view start) {
  switch (format) {
    case ImageFormat::kJpeg: return walk_jpeg(start);
    case ImageFormat::kPng: return walk_png(start);
    case ImageFormat::kGif: return walk_gif(start);
    case ImageFormat::kWebp: return walk_webp(start);
    case ImageFormat::kTiff: {
      const auto tiff = read_tiff_start(start);
      const bool has_directory = tiff && tiff->directory < start.size();
      return walk_tiff(start, has_directory ? start.substr(tiff->directory) : std::string_view());
    }
  }
  throw InternalError("an image format without a header");
}

ImageHeader checked(const HeaderWalk& walk, ImageFormat format, int64_t file_bytes) {
  if (!walk.is_complete) {
    throw DataError(fmt::format("damaged {}: the file ends in its header", name_of(format)));
  }
  const ImageShape& shape = walk.header.shape;
  check_image_size(shape.height, shape.width, file_bytes, kMaxPixels);
  return walk.header;
}

// The directory of a TIFF file may be anywhere, often at its end. Nothing if it is longer than the
// bytes that are read here.
std::optional<ImageHeader> read_tiff_header(std::string_view start, const FileDescriptor& file,
                                            const fs::path& path, int64_t offset, int64_t bytes) {
  constexpr int64_t kDirectoryBytes = 1 << 13;
  const auto tiff = read_tiff_start(start);
  if (!tiff || tiff->directory >= static_cast<uint64_t>(bytes)) return std::nullopt;
  const auto at = static_cast<int64_t>(tiff->directory);
  std::string directory(static_cast<size_t>(std::min(bytes - at, kDirectoryBytes)), '\0');
  if (!read_exactly(file, path, offset + at, directory.data(),
                    static_cast<int64_t>(directory.size()))) {
    return std::nullopt;
  }
  const HeaderWalk walk = walk_tiff(start, directory);
  if (!walk.is_complete) return std::nullopt;
  return checked(walk, ImageFormat::kTiff, bytes);
}

}  // namespace

std::optional<ImageHeader> parse_image_header(std::string_view start, int64_t file_bytes) {
  const ImageFormat format = detect_format(start);
  const HeaderWalk found = walk(format, start);
  if (!found.is_complete && static_cast<int64_t>(start.size()) < file_bytes) return std::nullopt;
  return checked(found, format, file_bytes);
}

ImageHeader read_image_header(const FileDescriptor& file, const fs::path& path, int64_t offset,
                              int64_t bytes, std::vector<char>& buffer) {
  constexpr int64_t kFirstRead = 1 << 12, kGrowth = 16;
  for (int64_t wanted = std::min(bytes, kFirstRead);; wanted = std::min(bytes, wanted * kGrowth)) {
    reserve_bytes(buffer, static_cast<size_t>(wanted));
    if (!read_exactly(file, path, offset, buffer.data(), wanted)) {
      throw DataError("the file became shorter after the start");
    }
    const std::string_view start(buffer.data(), static_cast<size_t>(wanted));
    auto header = parse_image_header(start, bytes);
    if (!header) header = read_tiff_header(start, file, path, offset, bytes);
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
    return walk(detect_format(file), file).header.orientation;
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
