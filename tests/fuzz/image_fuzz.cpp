#include <algorithm>

#include <zlib.h>

#include "fuzz/fuzz.h"
#include "gallop/base/error.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_header.h"
#include "gallop/tensor/safetensors.h"
#include "unit/data/format_files.h"
#include "unit/fixtures.h"

using namespace gallop;

namespace {

// The center crop of an image.
class Middle final : public data::RegionChooser {
 public:
  data::Region choose(int height, int width) override {
    return {.top = height / 4,
            .left = width / 4,
            .height = std::max(1, height / 2),
            .width = std::max(1, width / 2)};
  }
};

uint32_t big_endian(const std::string& file, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(file[at + i]);
  return value;
}

// Most changes of a PNG are detected by a chunk's checksum; fixing it tests the code behind it.
void repair_png(std::string& file) {
  if (!file.starts_with("\x89PNG")) return;
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t length = big_endian(file, at);
    if (length > file.size() - at - 12) return;
    const auto crc = static_cast<uint32_t>(crc32(
        0, reinterpret_cast<const Bytef*>(file.data()) + at + 4, static_cast<uInt>(length + 4)));
    for (size_t i = 0; i < 4; ++i) {
      file[at + 8 + length + i] = static_cast<char>(crc >> (24 - 8 * i));
    }
    at += 12 + length;
  }
}

// The header agrees with the decoded image, and the beginning of a file gives the same header or is
// reported as too short.
void check_header(const std::string& file) {
  static data::ImageDecoder decoder;
  static data::Image image;
  try {
    const auto bytes = static_cast<int64_t>(file.size());
    const auto header = data::parse_image_header(file, bytes);
    require(header.has_value());
    require(header->orientation >= 1 && header->orientation <= 8);
    for (size_t part = file.size() / 2; part > 8; part /= 2) {
      const auto start = data::parse_image_header(file.substr(0, part), bytes);
      require(!start || start->shape == header->shape);
    }
    decoder.decode(file, {.channels = 0}, image);
    const data::ImageShape shape = data::oriented(*header).shape;
    require(image.height == shape.height && image.width == shape.width);
    require(image.channels == shape.channels);
  } catch (const DataError&) {
  }
}

void decode(const std::string& file) {
  static data::ImageDecoder decoder;
  static data::Image image;
  Middle middle;
  for (const auto& request :
       {data::DecodeRequest{.channels = 3}, data::DecodeRequest{.channels = 1, .min_side = 4},
        data::DecodeRequest{.channels = 0, .region = &middle},
        data::DecodeRequest{.channels = 0, .indices = true}}) {
    try {
      decoder.decode(file, request, image);
      require(image.height > 0 && image.width > 0 && (image.channels == 1 || image.channels == 3));
      require(request.channels == 0 || image.channels == request.channels);
      require(static_cast<size_t>(image.height) * static_cast<size_t>(image.width) *
                  static_cast<size_t>(image.channels) <=
              image.pixels.size());
    } catch (const DataError&) {
    }
  }
  check_header(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  decode(file);
  repair_png(file);
  decode(file);
  return 0;
}

// Small files of the other formats.
static std::vector<std::string> stored_seeds() {
  constexpr int64_t kMaxBytes = 3000;
  std::vector<std::string> seeds;
  for (const auto& [name, tensor] :
       read_safetensors(fixtures() / "image_formats.safetensors").tensors) {
    if (!name.ends_with(".file") || name.starts_with("jpeg.") || tensor.numel() > kMaxBytes)
      continue;
    seeds.emplace_back(static_cast<const char*>(tensor.const_data_ptr()),
                       static_cast<size_t>(tensor.numel()));
  }
  return seeds;
}

std::vector<std::string> fuzz_seeds() {
  using namespace gallop::data;
  const Image color = make_picture(24, 20, 3, 1), gray = make_picture(9, 17, 1, 2);
  const Image inks = make_picture(8, 8, 4, 3);
  std::vector<std::string> seeds = stored_seeds();
  const std::vector<std::string> made{
      make_jpeg(color),
      with_exif(make_jpeg(color), make_exif(6)),
      with_exif(make_jpeg(gray, {.progressive = true}), make_exif(3, false)),
      with_exif(make_png(24, 20, color.pixels), make_exif(8)),
      make_jpeg(color, {.progressive = true, .full_chroma = false}),
      make_jpeg(gray),
      make_jpeg(inks, {.full_chroma = false, .cmyk = true}),
      make_png(24, 20, color.pixels),
      make_png(9, 17, gray.pixels, {.color_type = 0, .interlaced = true}),
      make_png(1, 3, {0b01'10'00'00},
               {.color_type = 3, .bit_depth = 2, .palette = {1, 2, 3, 4, 5, 6, 7, 8, 9}}),
      make_png(2, 2, std::vector<uint8_t>(32, 7), {.color_type = 6, .bit_depth = 16})};
  seeds.insert(seeds.end(), made.begin(), made.end());
  return seeds;
}
