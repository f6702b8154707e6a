#include <jerror.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <jpeglib.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/channels.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

namespace {

constexpr int kMaxScans = 100;  // A progressive file may have any number and take hours.

// Each 8 x 8 block takes at least one bit when Huffman-coded. With the most uneven sampling factors
// there is one block per 128 pixels; twice that is allowed.
constexpr int64_t kPixelsPerByte = 2048;

// Warnings that do not affect the pixels. Extra bytes before a marker occur in files of well-known
// data sets and are accepted by all common readers.
bool is_harmless(int code) {
  return code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_NOT_SEQUENTIAL ||
         code == JWRN_EXTRANEOUS_DATA;
}

void check_region(const Region& region, int height, int width) {
  if (region.top < 0 || region.left < 0 || region.height <= 0 || region.width <= 0 ||
      region.height > height - region.top || region.width > width - region.left) {
    throw InternalError(fmt::format("region of {} x {} pixels at ({}, {}) of an image of {} x {}",
                                    region.height, region.width, region.top, region.left, height,
                                    width));
  }
}

}  // namespace

struct JpegDecoder::State {
  State();
  ~State() { jpeg_destroy_decompress(&info); }

  // The steps of decoding. No object with a destructor may live between setjmp and longjmp, so
  // these return false and leave the reason in `message`.
  bool read_header(std::string_view file);
  bool read_pixels(std::string_view file, const DecodeRequest& request, Image& image);
  void choose_output(const DecodeRequest& request);
  void begin_region(Image& image);
  void read_rows(Image& image);
  void read_cmyk_rows(Image& image);
  void finish(std::string_view file);
  [[noreturn]] void fail();

  static State& of(j_common_ptr common) { return *static_cast<State*>(common->client_data); }
  static void on_error(j_common_ptr common);
  static void on_message(j_common_ptr common, int level);
  static void on_progress(j_common_ptr common);
  static void ignore(j_common_ptr) {}

  Region region;           // In pixels of the whole image at full size.
  JDIMENSION end_row = 0;  // The first output row that is not needed.
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX] = "";
  std::vector<uint8_t> cmyk_row;
  std::vector<uint8_t> detour;
};

JpegDecoder::State::State() {
  info.err = jpeg_std_error(&errors);
  info.client_data = this;
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  errors.output_message = ignore;
  progress.progress_monitor = on_progress;
  if (setjmp(jump) != 0) throw DataError(message);
  jpeg_create_decompress(&info);
  info.progress = &progress;
}

void JpegDecoder::State::on_error(j_common_ptr common) {
  State& state = of(common);
  common->err->format_message(common, state.message);
  std::longjmp(state.jump, 1);
}

void JpegDecoder::State::on_message(j_common_ptr common, int level) {
  if (level < 0 && !is_harmless(common->err->msg_code)) on_error(common);
}

void JpegDecoder::State::on_progress(j_common_ptr common) {
  State& state = of(common);
  if (state.info.input_scan_number <= kMaxScans) return;
  std::snprintf(state.message, sizeof state.message, "more than %d progressive scans", kMaxScans);
  std::longjmp(state.jump, 1);
}

void JpegDecoder::State::fail() {
  throw DataError(fmt::format("damaged JPEG: {}", printable(message)));
}

bool JpegDecoder::State::read_header(std::string_view file) {
  if (setjmp(jump) != 0) return false;
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  return true;
}

// The scale 1/2, 1/4 or 1/8 that keeps the shorter side at least `min_side` long.
static unsigned reduction(int shorter_side, int min_side) {
  if (min_side <= 0) return 1;
  for (const int by : {8, 4, 2}) {
    if ((shorter_side + by - 1) / by >= min_side) return static_cast<unsigned>(by);
  }
  return 1;
}

void JpegDecoder::State::choose_output(const DecodeRequest& request) {
  info.scale_num = 1;
  info.scale_denom = reduction(std::min(region.height, region.width), request.min_side);
  const bool is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
  const bool gray =
      request.channels == 1 || (request.channels == 0 && info.jpeg_color_space == JCS_GRAYSCALE);
  info.out_color_space = is_cmyk ? JCS_CMYK : gray ? JCS_GRAYSCALE : JCS_RGB;
}

// Skips what is left of, right of and above the region; libjpeg rounds to whole blocks.
void JpegDecoder::State::begin_region(Image& image) {
  const auto by = static_cast<int>(info.scale_denom);
  JDIMENSION left = static_cast<JDIMENSION>(region.left / by);
  const auto top = static_cast<JDIMENSION>(region.top / by);
  const auto right = static_cast<JDIMENSION>((region.left + region.width + by - 1) / by);
  end_row = static_cast<JDIMENSION>((region.top + region.height + by - 1) / by);
  JDIMENSION width = right - left;
  if (width < info.output_width) jpeg_crop_scanline(&info, &left, &width);
  if (top > 0) jpeg_skip_scanlines(&info, top);
  const int channels = info.out_color_space == JCS_CMYK ? 3 : info.output_components;
  set_size(image, static_cast<int>(end_row - top), static_cast<int>(info.output_width), channels);
  image.top = static_cast<int>(top) * by;
  image.left = static_cast<int>(left) * by;
  image.reduction = by;
}

bool JpegDecoder::State::read_pixels(std::string_view file, const DecodeRequest& request,
                                     Image& image) {
  if (setjmp(jump) != 0) return false;
  choose_output(request);
  jpeg_start_decompress(&info);
  begin_region(image);
  if (info.out_color_space == JCS_CMYK) {
    read_cmyk_rows(image);
  } else {
    read_rows(image);
  }
  finish(file);
  return true;
}

// libjpeg-turbo uses non-temporal stores for rows aligned to 32 bytes, which makes small images 1.7
// times slower. Such rows are decoded through a buffer.
void JpegDecoder::State::read_rows(Image& image) {
  constexpr JDIMENSION kRowsAtOnce = 4;  // The maximum that libjpeg returns.
  constexpr size_t kAligned = 32;
  const size_t row_bytes = size_t{info.output_width} * static_cast<size_t>(info.output_components);
  const size_t stride = (row_bytes + kAligned - 1) / kAligned * kAligned;
  detour.resize(kRowsAtOnce * stride + kAligned);
  const auto is_aligned = [](const uint8_t* at) {
    return reinterpret_cast<uintptr_t>(at) % kAligned == 0;
  };
  uint8_t* const unaligned = detour.data() + (is_aligned(detour.data()) ? 1 : 0);
  uint8_t* out = image.pixels.data();
  JSAMPROW rows[kRowsAtOnce];
  while (info.output_scanline < end_row) {
    const JDIMENSION wanted = std::min(kRowsAtOnce, end_row - info.output_scanline);
    for (JDIMENSION i = 0; i < wanted; ++i) {
      uint8_t* const row = out + row_bytes * i;
      rows[i] = is_aligned(row) ? unaligned + stride * i : row;
    }
    const JDIMENSION got = jpeg_read_scanlines(&info, rows, wanted);
    for (JDIMENSION i = 0; i < got; ++i, out += row_bytes) {
      if (rows[i] != out) std::memcpy(out, rows[i], row_bytes);
    }
  }
}

void JpegDecoder::State::read_cmyk_rows(Image& image) {
  cmyk_row.resize(size_t{info.output_width} * 4);
  JSAMPROW row = cmyk_row.data();
  uint8_t* out = image.pixels.data();
  while (info.output_scanline < end_row) {
    jpeg_read_scanlines(&info, &row, 1);
    for (JDIMENSION i = 0; i < info.output_width; ++i) {
      // Inks are stored inverted, as Adobe's programs and common readers have it.
      const uint8_t* const inks = row + 4 * size_t{i};
      for (size_t ink = 0; ink < 3; ++ink) *out++ = under_inks(inks[ink], inks[3]);
    }
  }
}

// Rows below the region are not decoded, but a file without an end marker is damaged wherever the
// region is: an image must not be intact in one epoch and broken in the next.
void JpegDecoder::State::finish(std::string_view file) {
  if (end_row == info.output_height) {
    jpeg_finish_decompress(&info);
    return;
  }
  const std::string_view rest = file.substr(file.size() - info.src->bytes_in_buffer);
  // The marker may have been read already while fetching bits for the last rows.
  const bool has_end = info.unread_marker == JPEG_EOI || jpeg_input_complete(&info) ||
                       rest.rfind("\xff\xd9") != std::string_view::npos;
  if (!has_end) {
    WARNMS(&info, JWRN_JPEG_EOF);
  }
  jpeg_abort_decompress(&info);
}

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}
JpegDecoder::~JpegDecoder() = default;

void JpegDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  State& state = *state_;
  try {
    if (!state.read_header(file)) state.fail();
    check_image_size(state.info.image_height, state.info.image_width,
                     static_cast<int64_t>(file.size()),
                     state.info.arith_code ? kMaxPixels : kPixelsPerByte);
    const auto height = static_cast<int>(state.info.image_height);
    const auto width = static_cast<int>(state.info.image_width);
    state.region = request.region ? request.region->choose(height, width)
                                  : Region{.top = 0, .left = 0, .height = height, .width = width};
    check_region(state.region, height, width);
    if (!state.read_pixels(file, request, image)) state.fail();
  } catch (...) {
    jpeg_abort_decompress(&state.info);
    throw;
  }
  if (request.channels == 1) make_gray(image);
}

}  // namespace gallop::data
