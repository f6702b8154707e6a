#include "gallop/data/formats/gif.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gallop/base/error.h"
#include "gallop/data/channels.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

namespace {

// Codes with 12 bits stand for fewer than 4096 pixels each, shorter codes for fewer per bit.
constexpr int64_t kPixelsPerByte = int64_t{4096} * 8 / 12;

using Palette = std::array<uint8_t, size_t{3} * 256>;

/// Reads the bytes before the pixels; after the end of the file all values are 0.
class Cursor {
 public:
  explicit Cursor(std::string_view file) : file_(file) {}

  bool is_past_end() const { return at_ > file_.size(); }
  size_t at() const { return at_; }

  int byte() {
    const size_t at = at_++;
    return at < file_.size() ? static_cast<uint8_t>(file_[at]) : 0;
  }
  int word() {
    const int low = byte();
    return low | byte() << 8;
  }
  std::string_view bytes(size_t count) {
    const size_t from = std::min(at_, file_.size());
    at_ += count;
    return file_.substr(from, count);
  }
  // A list of blocks, the last of which is empty.
  void skip_blocks() {
    for (int length = byte(); length > 0 && !is_past_end(); length = byte()) {
      at_ += static_cast<size_t>(length);
    }
  }

 private:
  std::string_view file_;
  size_t at_ = 0;
};

constexpr int kHasPalette = 0x80;

std::string_view read_palette(Cursor& cursor, int flags) {
  if ((flags & kHasPalette) == 0) return {};
  return cursor.bytes(size_t{3} << ((flags & 7) + 1));
}

void read_frame(Cursor& cursor, GifLayout& layout) {
  constexpr int kInterlaced = 0x40;
  Region& frame = layout.frame;
  frame.left = cursor.word();
  frame.top = cursor.word();
  frame.width = cursor.word();
  frame.height = cursor.word();
  const int flags = cursor.byte();
  layout.is_interlaced = (flags & kInterlaced) != 0;
  const std::string_view palette = read_palette(cursor, flags);
  if (!palette.empty()) layout.palette = palette;
  layout.width = std::max(layout.width, frame.left + frame.width);
  layout.height = std::max(layout.height, frame.top + frame.height);
  layout.pixels = cursor.at();
  layout.is_complete = !cursor.is_past_end();
}

void read_extension(Cursor& cursor, GifLayout& layout) {
  constexpr int kGraphicControl = 0xF9, kIsTransparent = 1;
  if (cursor.byte() == kGraphicControl && cursor.byte() >= 4) {
    const int flags = cursor.byte();
    cursor.word();  // The time that the image is shown for.
    const int transparent = cursor.byte();
    if ((flags & kIsTransparent) != 0) layout.background = transparent;
  }
  cursor.skip_blocks();
}

/// Reads the codes of LZW from blocks of up to 255 bytes.
class CodeReader {
 public:
  CodeReader(std::string_view file, size_t at) : file_(file), at_(at) {}

  unsigned read(unsigned width) {
    while (count_ < width) {
      bits_ |= next_byte() << count_;
      count_ += 8;
    }
    const unsigned code = bits_ & ((1U << width) - 1);
    bits_ >>= width;
    count_ -= width;
    return code;
  }

 private:
  unsigned next_byte() {
    if (left_ == 0 && at_ < file_.size()) left_ = static_cast<uint8_t>(file_[at_++]);
    if (left_ == 0 || at_ >= file_.size()) {
      throw DataError("damaged GIF: the pixels of the image end too early");
    }
    --left_;
    return static_cast<uint8_t>(file_[at_++]);
  }

  std::string_view file_;
  size_t at_;
  size_t left_ = 0;  // In the current block.
  unsigned bits_ = 0, count_ = 0;
};

/// Decompresses LZW (GIF89a, appendix F). A string of the table is a part of what has been decoded:
/// the string of the code before it and the pixel after that.
void decompress(std::string_view file, size_t at, std::vector<uint8_t>& pixels, size_t count) {
  constexpr unsigned kMaxWidth = 12, kMaxCodes = 1 << kMaxWidth, kMaxPixelBits = 8;
  struct String {
    size_t from, length;
  };
  const unsigned pixel_bits = at < file.size() ? static_cast<uint8_t>(file[at]) : 0;
  if (pixel_bits == 0 || pixel_bits > kMaxPixelBits)
    throw DataError("damaged GIF: an invalid code size");
  const unsigned clear = 1U << pixel_bits, end = clear + 1;
  std::array<String, kMaxCodes> strings;
  CodeReader codes(file, at + 1);
  unsigned width = pixel_bits + 1, next = end + 1;
  String last{};  // String of the last code; without length after a clear code.
  for (size_t used = 0; used < count;) {
    const unsigned code = codes.read(width);
    if (code == end) throw DataError("damaged GIF: the pixels of the image end too early");
    if (code == clear) {
      width = pixel_bits + 1;
      next = end + 1;
      last.length = 0;
      continue;
    }
    if (last.length > 0 && next < kMaxCodes) strings[next++] = {last.from, last.length + 1};
    if (code >= next) throw DataError("damaged GIF: an invalid code");
    const String now{used, code < clear ? 1 : strings[code].length};
    if (code < clear) {
      pixels[used++] = static_cast<uint8_t>(code);
    } else {
      // The string may overlap its own copy by its last pixel.
      const size_t length = std::min(now.length, count - used);
      for (size_t i = 0; i < length; ++i, ++used) pixels[used] = pixels[strings[code].from + i];
    }
    last = now;
    if (next == 1U << width && width < kMaxWidth) ++width;
  }
}

bool is_gray_color(const char* rgb) { return rgb[0] == rgb[1] && rgb[1] == rgb[2]; }

}  // namespace

bool GifLayout::is_gray() const {
  for (size_t i = 0; i + 2 < palette.size(); i += 3) {
    if (!is_gray_color(palette.data() + i)) return false;
  }
  return true;
}

GifLayout read_gif_layout(std::string_view file) {
  constexpr int kExtension = '!', kFrame = ',', kEnd = ';';
  constexpr size_t kSignatureBytes = 6;
  Cursor cursor(file);
  cursor.bytes(kSignatureBytes);
  GifLayout layout;
  layout.width = cursor.word();
  layout.height = cursor.word();
  const int flags = cursor.byte();
  cursor.word();  // Background color and aspect ratio, which common readers ignore.
  layout.palette = read_palette(cursor, flags);
  while (!cursor.is_past_end()) {
    const int kind = cursor.byte();
    if (cursor.is_past_end()) break;
    if (kind == kEnd) throw DataError("damaged GIF: it has no image");
    if (kind == kExtension) read_extension(cursor, layout);
    if (kind == kFrame) {
      read_frame(cursor, layout);
      break;
    }
  }
  return layout;
}

void GifDecoder::place_frame(const GifLayout& layout) {
  const auto& [top, left, height, width] = layout.frame;
  const auto screen_width = static_cast<size_t>(layout.width);
  const uint8_t* in = frame_.data();
  const auto place_row = [&](int row) {
    std::memcpy(screen_.data() + static_cast<size_t>(top + row) * screen_width + left, in,
                static_cast<size_t>(width));
    in += width;
  };
  if (!layout.is_interlaced) {
    for (int row = 0; row < height; ++row) place_row(row);
    return;
  }
  constexpr std::array<std::array<int, 2>, 4> kPasses{{{0, 8}, {4, 8}, {2, 4}, {1, 2}}};
  for (const auto& [first, step] : kPasses) {
    for (int row = first; row < height; row += step) place_row(row);
  }
}

void GifDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  const GifLayout layout = read_gif_layout(file);
  if (!layout.is_complete) throw DataError("damaged GIF: the file ends in its header");
  const auto file_bytes = static_cast<int64_t>(file.size());
  check_image_size(layout.height, layout.width, file_bytes, kMaxPixels);
  check_image_size(layout.frame.height, layout.frame.width, file_bytes, kPixelsPerByte);
  const size_t frame_pixels =
      static_cast<size_t>(layout.frame.height) * static_cast<size_t>(layout.frame.width);
  const size_t pixels = static_cast<size_t>(layout.height) * static_cast<size_t>(layout.width);
  frame_.resize(std::max(frame_.size(), frame_pixels));
  decompress(file, layout.pixels, frame_, frame_pixels);
  screen_.assign(pixels, static_cast<uint8_t>(layout.background));
  place_frame(layout);

  // Indices beyond the palette are grays, as in Pillow.
  Palette colors;
  for (size_t i = 0; i < colors.size(); ++i) colors[i] = static_cast<uint8_t>(i / 3);
  if (!layout.palette.empty()) {
    std::memcpy(colors.data(), layout.palette.data(), layout.palette.size());
  }
  const bool is_gray = request.channels == 0 && layout.is_gray();
  set_size(image, layout.height, layout.width, is_gray || request.indices ? 1 : 3);
  uint8_t* out = image.pixels.data();
  if (request.indices) {
    std::memcpy(out, screen_.data(), pixels);
    return;
  }
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* const color = colors.data() + size_t{3} * screen_[i];
    if (is_gray) {
      *out++ = *color;
    } else {
      out = std::copy_n(color, 3, out);
    }
  }
  if (request.channels == 1) make_gray(image);
}

}  // namespace gallop::data
