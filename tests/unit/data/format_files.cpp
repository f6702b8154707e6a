#include "unit/data/format_files.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

namespace gallop::data {

TestFolder::TestFolder() {
  std::string name = (fs::temp_directory_path() / "gallop-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path TestFolder::add(const std::string& file, const std::string& content) const {
  fs::path path = path_ / file;
  make_folders(path.parent_path());
  FileWriter writer(path);
  writer.write(content);
  return path;
}

Image make_picture(int height, int width, int channels, int seed) {
  Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>(
            (seed * 37 + c * 60 + (c == 1 ? 2 : 4) * y + (c == 2 ? 1 : 3) * x) % 240));
      }
    }
  }
  return image;
}

std::string make_jpeg(const Image& picture, const JpegOptions& options) {
  jpeg_compress_struct info;
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* buffer = nullptr;
  unsigned long bytes = 0;
  jpeg_mem_dest(&info, &buffer, &bytes);
  info.image_width = static_cast<JDIMENSION>(picture.width);
  info.image_height = static_cast<JDIMENSION>(picture.height);
  info.input_components = picture.channels;
  info.in_color_space = options.cmyk ? JCS_CMYK : picture.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (options.progressive) jpeg_simple_progression(&info);
  if (options.full_chroma) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    auto* row =
        const_cast<uint8_t*>(picture.pixels.data()) +
        size_t{info.next_scanline} * info.image_width * static_cast<size_t>(picture.channels);
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  std::string file(reinterpret_cast<char*>(buffer), bytes);
  jpeg_destroy_compress(&info);
  std::free(buffer);
  return file;
}

std::string make_png(int height, int width, const std::vector<uint8_t>& rows,
                     const PngOptions& options) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp at, png_bytep data, size_t bytes) {
        static_cast<std::string*>(png_get_io_ptr(at))->append(reinterpret_cast<char*>(data), bytes);
      },
      nullptr);
  png_set_IHDR(png, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               options.bit_depth, options.color_type,
               options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!options.palette.empty()) {
    png_set_PLTE(png, info, reinterpret_cast<png_const_colorp>(options.palette.data()),
                 static_cast<int>(options.palette.size() / 3));
  }
  if (!options.transparency.empty()) {
    png_set_tRNS(png, info, options.transparency.data(),
                 static_cast<int>(options.transparency.size()), nullptr);
  }
  png_write_info(png, info);
  const size_t row_bytes = png_get_rowbytes(png, info);
  if (row_bytes * static_cast<size_t>(height) != rows.size()) throw std::logic_error("PNG rows");
  std::vector<png_bytep> pointers;
  for (int y = 0; y < height; ++y) {
    pointers.push_back(const_cast<uint8_t*>(rows.data()) + static_cast<size_t>(y) * row_bytes);
  }
  png_write_image(png, pointers.data());
  png_write_end(png, nullptr);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string make_exif(int orientation, bool little_endian) {
  std::string tiff = little_endian ? "II" : "MM";
  const auto put = [&](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      tiff += static_cast<char>(value >> (8 * (little_endian ? i : bytes - 1 - i)));
    }
  };
  put(42, 2);
  put(8, 4);  // Offset of the directory.
  put(1, 2);  // One entry: the orientation, one 16-bit integer.
  put(0x0112, 2);
  put(3, 2);
  put(1, 4);
  put(static_cast<uint32_t>(orientation), 2);
  put(0, 2);
  put(0, 4);
  return tiff;
}

std::string with_exif(const std::string& file, const std::string& exif) {
  const auto big_endian = [](size_t value, int bytes) {
    std::string text;
    for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  if (file.starts_with("\xff\xd8")) {
    const std::string content = std::string("Exif\0\0", 6) + exif;
    return file.substr(0, 2) + "\xff\xe1" + big_endian(content.size() + 2, 2) + content +
           file.substr(2);
  }
  constexpr size_t kBehindHeader = 8 + 25;
  const std::string chunk = "eXIf" + exif;
  const auto crc =
      crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  return file.substr(0, kBehindHeader) + big_endian(exif.size(), 4) + chunk + big_endian(crc, 4) +
         file.substr(kBehindHeader);
}

std::string make_idx(const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) file += static_cast<char>(size >> shift);
  }
  return file + values;
}

std::string make_gzip(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string file(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = static_cast<uInt>(file.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::logic_error("deflate");
  file.resize(stream.total_out);
  deflateEnd(&stream);
  return file;
}

std::string make_cifar_record(const std::vector<uint8_t>& labels, const Image& picture) {
  std::string record(labels.begin(), labels.end());
  const size_t plane = picture.pixels.size() / 3;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < plane; ++i) record += static_cast<char>(picture.pixels[3 * i + c]);
  }
  return record;
}

std::string make_tar_header(const std::string& name, uint64_t size, char type,
                            const std::string& prefix) {
  std::string block(512, '\0');
  const auto put = [&block](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(108, "0001750");
  put(116, "0001750");
  put(124, fmt::format("{:011o} ", size));
  put(136, "00000000000 ");
  put(148, "        ");
  block[156] = type;
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(345, prefix);
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

std::string make_tar_member(const std::string& name, const std::string& content, char type,
                            const std::string& prefix) {
  return make_tar_header(name, content.size(), type, prefix) + content +
         std::string((512 - content.size() % 512) % 512, '\0');
}

std::string make_tar_link(const std::string& name, const std::string& target, char type) {
  std::string block = make_tar_header(name, 0, type);
  block.replace(157, target.size(), target);
  block.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  return block.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

std::string make_tar_end() { return std::string(1024, '\0'); }

std::string make_tar(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file;
  for (const auto& [name, content] : members) file += make_tar_member(name, content);
  return file + make_tar_end();
}

std::string make_pax_record(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

}  // namespace gallop::data
