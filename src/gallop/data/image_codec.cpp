#include "gallop/data/image_codec.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/trace.h"
#include "gallop/data/image_header.h"
#include "gallop/data/orientation.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

// Detects other file formats, so that the message can name them.
const char* other_format(std::string_view file) {
  if (file.starts_with("GIF8"sv)) return "a GIF image";
  if (file.starts_with("RIFF"sv) && file.substr(0, 12).ends_with("WEBP"sv)) return "a WebP image";
  if (file.starts_with("BM"sv)) return "a BMP image";
  if (file.starts_with("II*\0"sv) || file.starts_with("MM\0*"sv)) return "a TIFF image";
  if (file.starts_with("\0\0\0\x0cjP  "sv)) return "a JPEG 2000 image";
  if (file.substr(4).starts_with("ftyp"sv)) return "an AVIF, HEIC or video file";
  return "no image that is known";
}

}  // namespace

void refuse_format(std::string_view file) {
  if (file.empty()) throw DataError("the file is empty");
  if (file.size() < 8) throw DataError(fmt::format("truncated: only {} bytes", file.size()));
  throw DataError(fmt::format("neither JPEG nor PNG but {}", other_format(file)));
}

void ImageDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  const TraceSpan span(SpanKind::kData, "decode");
  const int exif = request.orient ? exif_orientation(file) : 1;
  if (exif == 1) return decode_stored(file, request, image);
  OrientedRegion region(request.region, Orientation(exif));
  DecodeRequest stored = request;
  if (request.region != nullptr) stored.region = &region;
  decode_stored(file, stored, image);
  region.turn(image, turned_);
}

void ImageDecoder::decode_stored(std::string_view file, const DecodeRequest& request,
                                 Image& image) {
  if (file.starts_with("\xff\xd8\xff"sv)) {
    jpeg_.decode(file, request, image);
  } else if (file.starts_with("\x89PNG\r\n\x1a\n"sv)) {
    png_.decode(file, request, image);
  } else {
    refuse_format(file);
  }
}

ThreadDecoder& thread_decoder() {
  static thread_local ThreadDecoder decoder;
  return decoder;
}

void check_image_size(int64_t height, int64_t width, int64_t file_bytes, int64_t pixels_per_byte) {
  // Both sides are below 2^31, so the product cannot overflow.
  const int64_t pixels = height * width;
  if (pixels <= 0 || pixels > kMaxPixels) {
    throw DataError(
        fmt::format("{} x {} pixels, where 1 to {} are allowed in all", height, width, kMaxPixels));
  }
  if (pixels / pixels_per_byte > file_bytes) {
    throw DataError(
        fmt::format("truncated: {} bytes cannot hold {} x {} pixels", file_bytes, height, width));
  }
}

}  // namespace gallop::data
