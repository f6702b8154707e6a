#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// A temporary folder for one test, removed with its content.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const fs::path& path() const { return path_; }
  std::string name() const { return path_.string(); }
  /// Writes a file at a path in the folder, creating parent folders.
  fs::path add(const std::string& file, const std::string& content) const;

 private:
  fs::path path_;
};

/// A smooth colored picture that differs with `seed`.
Image make_picture(int height, int width, int channels, int seed);

struct JpegOptions {
  int quality = 95;
  bool progressive = false;
  bool full_chroma = true;  ///< Chroma is not subsampled.
  bool cmyk = false;        ///< The picture has four channels.
};
std::string make_jpeg(const Image& picture, const JpegOptions& options = {});

/// Rows as libpng expects them: `row_bytes` bytes each, libpng's `bit_depth` and `color_type`.
struct PngOptions {
  int color_type = 2;
  int bit_depth = 8;
  bool interlaced = false;
  std::vector<uint8_t> palette{};  ///< Red, green, blue of each entry.
  std::vector<uint8_t> transparency{};
};
std::string make_png(int height, int width, const std::vector<uint8_t>& rows,
                     const PngOptions& options = {});

/// A TIFF structure with only the orientation, in either byte order.
std::string make_exif(int orientation, bool little_endian = true);
/// A JPEG or PNG file with this Exif data inserted.
std::string with_exif(const std::string& file, const std::string& exif);

std::string make_idx(const std::vector<uint32_t>& sizes, const std::string& values);
std::string make_gzip(const std::string& content);
std::string make_cifar_record(const std::vector<uint8_t>& labels, const Image& picture);

/// One block of 512 bytes with a correct checksum. `type` as in ustar.
std::string make_tar_header(const std::string& name, uint64_t size, char type = '0',
                            const std::string& prefix = "");
/// Header, content and padding of one member.
std::string make_tar_member(const std::string& name, const std::string& content, char type = '0',
                            const std::string& prefix = "");
/// A hard link ('1') or symbolic link ('2').
std::string make_tar_link(const std::string& name, const std::string& target, char type = '2');
/// The end marker: two blocks of zeros.
std::string make_tar_end();
/// A complete archive.
std::string make_tar(const std::vector<std::pair<std::string, std::string>>& members);
/// One "LENGTH key=value\n" of a pax header.
std::string make_pax_record(const std::string& key, const std::string& value);

}  // namespace gallop::data
