#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "gallop/data/formats/gif.h"
#include "gallop/data/formats/tiff.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// Images with more pixels than this are rejected before any allocation.
inline constexpr int64_t kMaxPixels = int64_t{1} << 28;

/// JPEG decoder on libjpeg-turbo's libjpeg API, which is 10% faster for 32 x 32 images than
/// TurboJPEG, which reads every header twice.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  void decode(std::string_view file, const DecodeRequest& request, Image& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// PNG decoder on libpng.
class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  void decode(std::string_view file, const DecodeRequest& request, Image& image);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decodes image files in memory, detecting the format from the content, and reuses its buffers.
/// Not thread-safe.
class ImageDecoder {
 public:
  /// Decodes a whole file. Throws DataError, without the file's name, if it is empty, damaged, too
  /// large or of another format. Decoder warnings, such as premature end of data, are errors.
  void decode(std::string_view file, const DecodeRequest& request, Image& image);

 private:
  void decode_stored(std::string_view file, const DecodeRequest& request, Image& image);

  JpegDecoder jpeg_;
  PngDecoder png_;
  GifDecoder gif_;
  TiffDecoder tiff_;
  std::vector<uint8_t> oriented_;
};

/// The calling thread's own decoder and file buffer, kept until the thread ends.
struct ThreadDecoder {
  ImageDecoder decoder;
  std::vector<char> file;
};
ThreadDecoder& thread_decoder();

/// Throws DataError for a mask with 16 bits per pixel.
[[noreturn]] void refuse_wide_indices();

/// Throws DataError if an image of this size has more than kMaxPixels, or more pixels than
/// `file_bytes` can encode at `pixels_per_byte`.
void check_image_size(int64_t height, int64_t width, int64_t file_bytes, int64_t pixels_per_byte);

}  // namespace gallop::data
