#include "gallop/data/image_codec.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/trace.h"
#include "gallop/data/formats/image_format.h"
#include "gallop/data/formats/webp.h"
#include "gallop/data/image_header.h"
#include "gallop/data/orientation.h"

namespace gallop::data {

void ImageDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  const TraceSpan span(SpanKind::kData, "decode");
  const int exif = request.orient ? exif_orientation(file) : 1;
  if (exif == 1) return decode_stored(file, request, image);
  OrientedRegion region(request.region, Orientation(exif));
  DecodeRequest stored = request;
  if (request.region != nullptr) stored.region = &region;
  decode_stored(file, stored, image);
  region.turn(image, oriented_);
}

void ImageDecoder::decode_stored(std::string_view file, const DecodeRequest& request,
                                 Image& image) {
  switch (detect_format(file)) {
    case ImageFormat::kJpeg: return jpeg_.decode(file, request, image);
    case ImageFormat::kPng: return png_.decode(file, request, image);
    case ImageFormat::kGif: return gif_.decode(file, request, image);
    case ImageFormat::kWebp:
      if constexpr (GALLOP_WEBP != 0) return decode_webp(file, request, image);
      break;
    case ImageFormat::kTiff:
      if constexpr (GALLOP_TIFF != 0) return tiff_.decode(file, request, image);
      break;
  }
  throw InternalError("a format without a decoder was detected");
}

ThreadDecoder& thread_decoder() {
  static thread_local ThreadDecoder decoder;
  return decoder;
}

void refuse_wide_indices() { throw DataError("a mask of 16 bits per pixel, where 8 are read"); }

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
