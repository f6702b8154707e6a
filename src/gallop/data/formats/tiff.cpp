#include "gallop/data/formats/tiff.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/channels.h"
#include "gallop/data/formats/header_walk.h"
#include "gallop/data/formats/tiff_directory.h"
#include "gallop/data/formats/tiff_file.h"
#include "gallop/data/image_codec.h"

namespace gallop::data {

namespace {

constexpr int kMaxSamples = 16;
constexpr int64_t kMaxBlockBytes = int64_t{1} << 30;

using Palette = std::array<uint8_t, size_t{3} * 256>;

[[noreturn]] void refuse(const std::string& what) {
  throw DataError(fmt::format("is a TIFF image {}, which is not read", what));
}

/// What the samples of a pixel are.
enum class Colors { kGray, kPalette, kRgb, kCmyk, kYcbcr };

struct TiffLayout {
  int height = 0, width = 0;
  int bits = 8;     ///< Of a sample.
  int samples = 1;  ///< Of a pixel in the file.
  int kept = 1;     ///< The first of them, which are needed.
  Colors colors = Colors::kGray;
  bool is_inverted = false;  ///< 0 is white.
  bool has_alpha = false;    ///< The last of the kept samples has multiplied the colors.
  bool is_separate = false;  ///< Each sample has its own strips or tiles.
};

// How many pixels a byte may hold, where the compression limits it.
int64_t pixels_per_byte(uint16_t compression) {
  constexpr int64_t kPixelsOfABit = 8;
  switch (compression) {
    case COMPRESSION_NONE: return kPixelsOfABit;
    case COMPRESSION_PACKBITS: return kPixelsOfABit * 64;
    case COMPRESSION_LZW: return kPixelsOfABit * 4096;
    case COMPRESSION_ADOBE_DEFLATE:
    case COMPRESSION_DEFLATE: return kPixelsOfABit * 1032;
    case COMPRESSION_JPEG: return 2048;
    case COMPRESSION_CCITTRLE:
    case COMPRESSION_CCITTFAX3:
    case COMPRESSION_CCITTFAX4:
    case COMPRESSION_LZMA:
    case COMPRESSION_ZSTD:
    case COMPRESSION_WEBP: return kMaxPixels;
    default: break;
  }
  const TIFFCodec* const codec = TIFFFindCODEC(compression);
  const std::string name = codec != nullptr ? codec->name : std::to_string(compression);
  refuse(fmt::format("with the compression {}", name));
}

Colors colors_of(const TiffFile& tiff) {
  constexpr uint16_t kInksOfCmyk = INKSET_CMYK;
  const auto photometric = tiff.tag<uint16_t>(TIFFTAG_PHOTOMETRIC);
  switch (photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK: return Colors::kGray;
    case PHOTOMETRIC_RGB: return Colors::kRgb;
    case PHOTOMETRIC_PALETTE: return Colors::kPalette;
    case PHOTOMETRIC_YCBCR: return Colors::kYcbcr;
    case PHOTOMETRIC_SEPARATED:
      if (tiff.tag<uint16_t>(TIFFTAG_INKSET) == kInksOfCmyk) return Colors::kCmyk;
      refuse("of other inks than CMYK");
    case PHOTOMETRIC_CIELAB: refuse("of Lab colors");
    default: refuse(fmt::format("of photometric interpretation {}", photometric));
  }
}

ImageHeader header_of(std::string_view file) {
  const auto start = read_tiff_start(file);
  if (!start || start->directory >= file.size()) throw DataError("damaged TIFF: no directory");
  const HeaderWalk walk = walk_tiff(file, file.substr(start->directory));
  if (!walk.is_complete) throw DataError("damaged TIFF: the file ends in its header");
  return walk.header;
}

TiffLayout read_layout(TiffFile& tiff, std::string_view file) {
  TiffLayout layout;
  const auto width = tiff.tag<uint32_t>(TIFFTAG_IMAGEWIDTH);
  const auto height = tiff.tag<uint32_t>(TIFFTAG_IMAGELENGTH);
  const ImageShape shape = header_of(file).shape;
  layout.colors = colors_of(tiff);
  if (height != static_cast<uint32_t>(shape.height) ||
      width != static_cast<uint32_t>(shape.width) ||
      (layout.colors == Colors::kGray) != (shape.channels == 1)) {
    throw DataError("damaged TIFF: a contradictory header");
  }
  check_image_size(height, width, static_cast<int64_t>(file.size()),
                   pixels_per_byte(tiff.tag<uint16_t>(TIFFTAG_COMPRESSION)));
  layout.height = static_cast<int>(height);
  layout.width = static_cast<int>(width);
  layout.bits = tiff.tag<uint16_t>(TIFFTAG_BITSPERSAMPLE);
  layout.samples = tiff.tag<uint16_t>(TIFFTAG_SAMPLESPERPIXEL);
  layout.is_separate = tiff.tag<uint16_t>(TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE;
  layout.is_inverted = tiff.tag<uint16_t>(TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_MINISWHITE;

  const auto format = tiff.tag<uint16_t>(TIFFTAG_SAMPLEFORMAT);
  if (format == SAMPLEFORMAT_IEEEFP) {
    throw DataError(
        "is a TIFF image of floating-point numbers, whose range is unknown; scale it to 8 or 16 "
        "bits, or save the values by numpy.save and read them with data.name: arrays");
  }
  if (format != SAMPLEFORMAT_UINT && format != SAMPLEFORMAT_VOID) refuse("of signed numbers");
  const bool is_single = layout.samples == 1;
  const bool is_packed = layout.bits == 1 || layout.bits == 2 || layout.bits == 4;
  const bool is_wide = layout.bits == 16 && layout.colors != Colors::kPalette;
  if (layout.bits != 8 && !is_wide && !(is_packed && is_single)) {
    refuse(fmt::format("of {} bits per sample", layout.bits));
  }
  const bool is_single_sample = layout.colors == Colors::kGray || layout.colors == Colors::kPalette;
  layout.kept = is_single_sample ? 1 : layout.colors == Colors::kCmyk ? 4 : 3;
  if (layout.samples < layout.kept || layout.samples > kMaxSamples) {
    refuse(fmt::format("of {} samples per pixel", layout.samples));
  }
  uint16_t extras = 0;
  uint16_t* kinds = nullptr;
  TIFFGetFieldDefaulted(tiff.get(), TIFFTAG_EXTRASAMPLES, &extras, &kinds);
  const bool is_additive = layout.colors == Colors::kGray || layout.colors == Colors::kRgb;
  layout.has_alpha = is_additive && layout.samples > layout.kept && extras > 0 &&
                     kinds[0] == EXTRASAMPLE_ASSOCALPHA;
  if (layout.has_alpha) ++layout.kept;
  return layout;
}

/// A strip or tile, cut to the image.
struct Block {
  int top, left, height, width;
  int samples;  ///< Of a pixel in the block.
  int first;    ///< The kept sample that is the block's first one.
  size_t row_bytes;
};

// Copies the kept samples of a block, of 16 bits the higher 8.
void take_samples(const Block& block, const TiffLayout& layout, const uint8_t* in, uint8_t* out) {
  const auto kept = static_cast<size_t>(layout.kept), samples = static_cast<size_t>(block.samples);
  const size_t taken = layout.is_separate ? 1 : kept;
  const auto width = static_cast<size_t>(block.width), bits = static_cast<size_t>(layout.bits);
  for (int y = 0; y < block.height; ++y, in += block.row_bytes) {
    uint8_t* row = out + ((static_cast<size_t>(block.top + y) * static_cast<size_t>(layout.width) +
                           static_cast<size_t>(block.left)) *
                              kept +
                          static_cast<size_t>(block.first));
    if (bits == 8 && samples == kept && taken == kept) {
      std::memcpy(row, in, width * kept);
    } else if (bits == 8) {
      for (size_t x = 0; x < width; ++x, row += kept) std::copy_n(in + x * samples, taken, row);
    } else if (bits == 16) {
      for (size_t x = 0; x < width; ++x, row += kept) {
        for (size_t c = 0; c < taken; ++c) {
          uint16_t value;
          std::memcpy(&value, in + 2 * (x * samples + c), sizeof value);
          row[c] = static_cast<uint8_t>(value >> 8);
        }
      }
    } else {
      for (size_t x = 0; x < width; ++x, ++row) {
        *row =
            static_cast<uint8_t>(in[x * bits / 8] >> (8 - bits - x * bits % 8) & ((1 << bits) - 1));
      }
    }
  }
}

// Decompresses all strips or tiles.
void read_blocks(TiffFile& tiff, const TiffLayout& layout, std::vector<uint8_t>& buffer,
                 uint8_t* out) {
  TIFF* const file = tiff.get();
  const bool is_tiled = TIFFIsTiled(file) != 0;
  const auto rows = tiff.tag<uint32_t>(is_tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP);
  const int64_t height = is_tiled ? rows : std::min<int64_t>(rows, layout.height);
  const int64_t width = is_tiled ? tiff.tag<uint32_t>(TIFFTAG_TILEWIDTH) : layout.width;
  const int samples = layout.is_separate ? 1 : layout.samples;
  const int64_t row_bytes = (width * samples * layout.bits + 7) / 8;
  if (height <= 0 || width <= 0 || row_bytes > kMaxBlockBytes / height) {
    throw DataError(fmt::format("damaged TIFF: {} of {} x {} pixels", is_tiled ? "tiles" : "strips",
                                height, width));
  }
  // A tile may extend beyond the image, but not without limit.
  constexpr int64_t kMaxTile = 1 << 24;
  if (height * width > std::max(kMaxTile, int64_t{layout.height} * layout.width)) {
    refuse(fmt::format("in tiles of {} x {} pixels", height, width));
  }
  buffer.resize(std::max(buffer.size(), static_cast<size_t>(height * row_bytes)));
  const auto bytes = static_cast<tmsize_t>(height * row_bytes);
  for (int plane = 0; plane < (layout.is_separate ? layout.kept : 1); ++plane) {
    for (int64_t top = 0; top < layout.height; top += height) {
      for (int64_t left = 0; left < layout.width; left += width) {
        const auto x = static_cast<uint32_t>(left), y = static_cast<uint32_t>(top);
        const auto sample = static_cast<uint16_t>(plane);
        const tmsize_t got = is_tiled
                                 ? TIFFReadEncodedTile(file, TIFFComputeTile(file, x, y, 0, sample),
                                                       buffer.data(), bytes)
                                 : TIFFReadEncodedStrip(file, TIFFComputeStrip(file, y, sample),
                                                        buffer.data(), bytes);
        const Block block{.top = static_cast<int>(top),
                          .left = static_cast<int>(left),
                          .height = static_cast<int>(std::min(height, layout.height - top)),
                          .width = static_cast<int>(std::min(width, layout.width - left)),
                          .samples = samples,
                          .first = plane,
                          .row_bytes = static_cast<size_t>(row_bytes)};
        tiff.check(got >= block.height * row_bytes);
        take_samples(block, layout, buffer.data(), out);
      }
    }
  }
}

// YCbCr of other compressions than JPEG, whose samples libtiff converts with the image.
void read_ycbcr(TiffFile& tiff, const TiffLayout& layout, std::vector<uint8_t>& buffer,
                uint8_t* out) {
  char message[1024] = "";
  TIFFRGBAImage converter;
  if (TIFFRGBAImageOK(tiff.get(), message) == 0 ||
      TIFFRGBAImageBegin(&converter, tiff.get(), 1, message) == 0) {
    throw DataError(fmt::format("damaged TIFF: {}", message));
  }
  converter.req_orientation = converter.orientation;
  const size_t pixels = static_cast<size_t>(layout.height) * static_cast<size_t>(layout.width);
  buffer.resize(std::max(buffer.size(), 4 * pixels));
  const int is_good =
      TIFFRGBAImageGet(&converter, reinterpret_cast<uint32_t*>(buffer.data()),
                       static_cast<uint32_t>(layout.width), static_cast<uint32_t>(layout.height));
  TIFFRGBAImageEnd(&converter);
  tiff.check(is_good != 0);
  for (size_t i = 0; i < pixels; ++i) {
    uint32_t rgba;
    std::memcpy(&rgba, buffer.data() + 4 * i, sizeof rgba);
    *out++ = static_cast<uint8_t>(TIFFGetR(rgba));
    *out++ = static_cast<uint8_t>(TIFFGetG(rgba));
    *out++ = static_cast<uint8_t>(TIFFGetB(rgba));
  }
}

// Red, green and blue of each index.
Palette read_palette(TiffFile& tiff, int bits) {
  uint16_t* maps[3] = {};
  if (TIFFGetField(tiff.get(), TIFFTAG_COLORMAP, &maps[0], &maps[1], &maps[2]) == 0) {
    throw DataError("damaged TIFF: it has no palette");
  }
  const size_t count = size_t{1} << bits;
  // Some programs write 8 bits instead of 16.
  const bool is_narrow = std::all_of(std::begin(maps), std::end(maps), [&](const uint16_t* map) {
    return std::all_of(map, map + count, [](uint16_t value) { return value < 256; });
  });
  Palette palette{};
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      palette[3 * i + c] = static_cast<uint8_t>(is_narrow ? maps[c][i] : maps[c][i] >> 8);
    }
  }
  return palette;
}

uint8_t divided(uint8_t value, uint8_t alpha) {
  return static_cast<uint8_t>(alpha == 0 ? 0 : std::min(255, value * 255 / alpha));
}

// Writes the pixels in `image`, of one channel for gray ones or indices and of three for others.
void write_pixels(const TiffLayout& layout, const uint8_t* palette, bool indices, const uint8_t* in,
                  Image& image) {
  const bool is_single = layout.colors == Colors::kGray || layout.colors == Colors::kPalette;
  set_size(image, layout.height, layout.width,
           is_single && (palette == nullptr || indices) ? 1 : 3);
  const size_t pixels = static_cast<size_t>(layout.height) * static_cast<size_t>(layout.width);
  const auto kept = static_cast<size_t>(layout.kept);
  const size_t colors = kept - (layout.has_alpha ? 1 : 0);
  const int most = (1 << std::min(layout.bits, 8)) - 1;
  uint8_t* out = image.pixels.data();
  for (const uint8_t* const end = in + pixels * kept; in != end; in += kept) {
    if (layout.colors == Colors::kCmyk) {
      for (size_t c = 0; c < 3; ++c) *out++ = under_inks(255u - in[c], 255u - in[3]);
    } else if (layout.colors == Colors::kPalette) {
      out = indices ? std::copy_n(in, 1, out) : std::copy_n(palette + size_t{3} * *in, 3, out);
    } else if (layout.has_alpha) {
      for (size_t c = 0; c < colors; ++c) *out++ = divided(in[c], in[colors]);
    } else if (layout.colors == Colors::kGray) {
      const int value = layout.is_inverted ? most - *in : *in;
      *out++ = static_cast<uint8_t>(indices ? value : value * (255 / most));
    } else {
      out = std::copy_n(in, 3, out);
    }
  }
}

}  // namespace

void TiffDecoder::decode(std::string_view file, const DecodeRequest& request, Image& image) {
  TiffFile tiff(file);
  const TiffLayout layout = read_layout(tiff, file);
  if (request.indices && layout.bits > 8) refuse_wide_indices();
  const size_t pixels = static_cast<size_t>(layout.height) * static_cast<size_t>(layout.width);
  samples_.resize(std::max(samples_.size(), pixels * static_cast<size_t>(layout.kept)));
  tiff.begin_pixels();
  const bool is_jpeg = tiff.tag<uint16_t>(TIFFTAG_COMPRESSION) == COMPRESSION_JPEG;
  if (layout.colors == Colors::kYcbcr && !is_jpeg) {
    read_ycbcr(tiff, layout, block_, samples_.data());
  } else {
    // libjpeg converts the colors, also of subsampled ones.
    if (layout.colors == Colors::kYcbcr) {
      TIFFSetField(tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    read_blocks(tiff, layout, block_, samples_.data());
  }
  Palette palette{};
  const bool has_palette = layout.colors == Colors::kPalette;
  if (has_palette) palette = read_palette(tiff, layout.bits);
  write_pixels(layout, has_palette ? palette.data() : nullptr, request.indices, samples_.data(),
               image);
  if (request.channels == 1) make_gray(image);
  if (request.channels == 3 && image.channels == 1 && !request.indices) repeat_gray(image);
}

}  // namespace gallop::data
