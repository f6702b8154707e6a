#include "gallop/data/image_codec.h"

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

// What other files are, so that the message can name it.
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

void ImageDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  if (file.empty()) throw DataError("the file is empty");
  if (file.starts_with("\xff\xd8\xff"sv)) {
    jpeg_.decode(file, request, image);
  } else if (file.starts_with("\x89PNG\r\n\x1a\n"sv)) {
    png_.decode(file, request, image);
  } else if (file.size() < 8) {
    throw DataError(fmt::format("truncated: only {} bytes", file.size()));
  } else {
    throw DataError(fmt::format("neither JPEG nor PNG but {}", other_format(file)));
  }
}

ThreadDecoder& thread_decoder() {
  static thread_local ThreadDecoder decoder;
  return decoder;
}

void check_image_size(int64_t height, int64_t width, int64_t file_bytes, int64_t pixels_per_byte) {
  // Both sides are below 2^31, so that the product cannot overflow.
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
