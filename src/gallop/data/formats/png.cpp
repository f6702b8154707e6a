#include <algorithm>
#include <csetjmp>
#include <cstring>

#include <fmt/format.h>
#include <png.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/channels.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

namespace {

// DEFLATE expands a byte to at most 1032 bytes; a byte holds at most 8 pixels, of one bit each.
constexpr int64_t kPixelsPerByte = int64_t{8} * 1032;
constexpr png_alloc_size_t kMaxChunkBytes = 1 << 23;

}  // namespace

struct PngDecoder::State {
  bool read_header(std::string_view content);
  bool read_pixels(const DecodeRequest& request, Image& image);
  [[noreturn]] void fail();
  void close() { png_destroy_read_struct(&png, &info, nullptr); }

  static void on_error(png_structp png, png_const_charp text);
  static void on_warning(png_structp, png_const_charp) {}
  static void read(png_structp png, png_bytep out, size_t bytes);

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view file;
  size_t used = 0;
  char message[128] = "";
  std::vector<png_bytep> rows;
};

void PngDecoder::State::on_error(png_structp png, png_const_charp text) {
  auto& state = *static_cast<State*>(png_get_error_ptr(png));
  std::strncpy(state.message, text, sizeof state.message - 1);
  png_longjmp(png, 1);
}

void PngDecoder::State::read(png_structp png, png_bytep out, size_t bytes) {
  auto& state = *static_cast<State*>(png_get_io_ptr(png));
  if (bytes > state.file.size() - state.used) png_error(png, "the file ends too early");
  std::memcpy(out, state.file.data() + state.used, bytes);
  state.used += bytes;
}

void PngDecoder::State::fail() {
  throw DataError(fmt::format("damaged PNG: {}", printable(message)));
}

bool PngDecoder::State::read_header(std::string_view content) {
  file = content;
  used = 0;
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  if (png == nullptr) throw std::bad_alloc();
  info = png_create_info_struct(png);
  if (info == nullptr) throw std::bad_alloc();
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_read_fn(png, this, read);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_malloc_max(png, kMaxChunkBytes);
  // Color profiles, texts and dates take time and do not affect training.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_read_info(png, info);
  return true;
}

bool PngDecoder::State::read_pixels(const DecodeRequest& request, Image& image) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  const bool color = (png_get_color_type(png, info) & PNG_COLOR_MASK_COLOR) != 0;
  const bool is_palette = png_get_color_type(png, info) == PNG_COLOR_TYPE_PALETTE;
  if (request.indices && (is_palette || !color)) {
    png_set_packing(png);
  } else {
    png_set_expand(png);
  }
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  if (!color && request.channels == 3 && !request.indices) png_set_gray_to_rgb(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  const png_uint_32 height = png_get_image_height(png, info);
  set_size(image, static_cast<int>(height), static_cast<int>(png_get_image_width(png, info)),
           png_get_channels(png, info));
  const size_t row_bytes = png_get_rowbytes(png, info);
  rows.resize(height);
  for (size_t i = 0; i < height; ++i) rows[i] = image.pixels.data() + i * row_bytes;
  png_read_image(png, rows.data());
  png_read_end(png, nullptr);
  return true;
}

PngDecoder::PngDecoder() : state_(std::make_unique<State>()) {}
PngDecoder::~PngDecoder() = default;

void PngDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  State& state = *state_;
  try {
    if (!state.read_header(file)) state.fail();
    check_image_size(png_get_image_height(state.png, state.info),
                     png_get_image_width(state.png, state.info), static_cast<int64_t>(file.size()),
                     kPixelsPerByte);
    if (request.indices && png_get_bit_depth(state.png, state.info) == 16) refuse_wide_indices();
    if (!state.read_pixels(request, image)) state.fail();
  } catch (...) {
    state.close();
    throw;
  }
  state.close();
  if (request.channels == 1) make_gray(image);
}

}  // namespace gallop::data
