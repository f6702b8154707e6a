#include "gallop/data/formats/webp.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "gallop/base/error.h"
#include "gallop/data/channels.h"
#include "gallop/data/formats/header_walk.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

namespace {

[[noreturn]] void fail(const char* reason) {
  throw DataError(fmt::format("damaged WebP: {}", reason));
}

void check(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK: return;
    case VP8_STATUS_OUT_OF_MEMORY: throw std::bad_alloc();
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: fail("the file ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE: fail("a feature that is not supported");
    default: fail("an invalid bitstream");
  }
}

// Decodes one image to RGB; transparency is dropped.
void decode_frame(const uint8_t* bytes, size_t count, int height, int width, uint8_t* out,
                  size_t row_bytes) {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) throw InternalError("another version of libwebp");
  check(WebPGetFeatures(bytes, count, &config.input));
  if (config.input.width != width || config.input.height != height) fail("contradictory sizes");
  config.output.colorspace = MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {
      .rgba = out,
      .stride = static_cast<int>(row_bytes),
      .size = row_bytes * static_cast<size_t>(height - 1) + static_cast<size_t>(width) * 3};
  check(WebPDecode(bytes, count, &config));
}

struct FreeDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};
struct ReleaseFrame {
  void operator()(WebPIterator* frame) const { WebPDemuxReleaseIterator(frame); }
};

// The first image of an animation, on a screen of zeros.
void decode_first_frame(std::string_view file, Image& image) {
  const WebPData data{reinterpret_cast<const uint8_t*>(file.data()), file.size()};
  const std::unique_ptr<WebPDemuxer, FreeDemuxer> demuxer(WebPDemux(&data));
  if (!demuxer) fail("an invalid or truncated animation");
  WebPIterator frame;
  if (WebPDemuxGetFrame(demuxer.get(), 1, &frame) == 0) fail("an animation without images");
  const std::unique_ptr<WebPIterator, ReleaseFrame> release(&frame);
  const size_t row_bytes = static_cast<size_t>(image.width) * 3;
  if (frame.x_offset < 0 || frame.y_offset < 0 || frame.width > image.width - frame.x_offset ||
      frame.height > image.height - frame.y_offset) {
    fail("an image beyond its animation");
  }
  std::fill_n(image.pixels.begin(), row_bytes * static_cast<size_t>(image.height), uint8_t{0});
  uint8_t* const first = image.pixels.data() + static_cast<size_t>(frame.y_offset) * row_bytes +
                         static_cast<size_t>(frame.x_offset) * 3;
  decode_frame(frame.fragment.bytes, frame.fragment.size, frame.height, frame.width, first,
               row_bytes);
}

}  // namespace

void decode_webp(std::string_view file, const DecodeRequest& request, Image& image) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(file.data());
  WebPBitstreamFeatures features;
  check(WebPGetFeatures(bytes, file.size(), &features));
  // A single color takes a few bytes at any size.
  check_image_size(features.height, features.width, static_cast<int64_t>(file.size()), kMaxPixels);
  const ImageShape& shape = walk_webp(file).header.shape;
  if (features.height != shape.height || features.width != shape.width) fail("contradictory sizes");
  set_size(image, features.height, features.width, 3);
  if (features.has_animation != 0) {
    decode_first_frame(file, image);
  } else {
    decode_frame(bytes, file.size(), image.height, image.width, image.pixels.data(),
                 static_cast<size_t>(image.width) * 3);
  }
  if (request.channels == 1) make_gray(image);
}

}  // namespace gallop::data
