#include "gallop/data/formats/image_format.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;

constexpr std::array kEndings{"jpg"sv, "jpeg"sv, "png"sv, "gif"sv, "webp"sv, "tif"sv, "tiff"sv};
constexpr std::array kUnreadEndings{"bmp"sv, "jfif"sv, "jpe"sv,  "jif"sv,  "jp2"sv,
                                    "jxl"sv, "avif"sv, "heic"sv, "heif"sv, "ppm"sv,
                                    "pgm"sv, "pbm"sv,  "pnm"sv,  "tga"sv,  "apng"sv};

// The extension in lower case, without the dot.
std::string ending_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  std::string ending(name.substr(dot + 1));
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return ending;
}

// Detects other image formats, so that the message can name them; empty if it is none of them.
std::string_view other_format(std::string_view file) {
  constexpr std::string_view kSpaces = " \t\r\n#";
  if (file.starts_with("BM"sv)) return "BMP image";
  if (file[0] == 'P' && file[1] >= '1' && file[1] <= '7' &&
      kSpaces.find(file[2]) != std::string_view::npos) {
    return "PPM, PGM, PBM or PAM image";
  }
  if (file.starts_with("\0\0\0\x0cjP  "sv)) return "JPEG 2000 image";
  if (file.starts_with("\0\0\0\x0cJXL "sv) || file.starts_with("\xff\x0a"sv))
    return "JPEG XL image";
  if (file.starts_with("8BPS"sv)) return "Photoshop image";
  if (file.substr(4).starts_with("ftyp"sv)) return "AVIF, HEIC or video file";
  return {};
}

[[noreturn]] void refuse(std::string_view file) {
  if (file.empty()) throw DataError("the file is empty");
  if (file.size() < 8) throw DataError(fmt::format("truncated: only {} bytes", file.size()));
  const std::string_view other = other_format(file);
  throw DataError(
      other.empty()
          ? "neither JPEG, PNG, GIF, WebP nor TIFF"
          : fmt::format("is a{} {}, which is not read; convert it to PNG or JPEG, as ImageMagick's "
                        "mogrify does",
                        other[0] == 'A' ? "n" : "", other));
}

ImageFormat format_of(std::string_view file) {
  if (file.starts_with("\xff\xd8\xff"sv)) return ImageFormat::kJpeg;
  if (file.starts_with("\x89PNG\r\n\x1a\n"sv)) return ImageFormat::kPng;
  if (file.starts_with("GIF87a"sv) || file.starts_with("GIF89a"sv)) return ImageFormat::kGif;
  if (file.starts_with("RIFF"sv) && (file.size() < 12 || file.substr(8, 4) == "WEBP"sv)) {
    return ImageFormat::kWebp;
  }
  for (const std::string_view start : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (file.starts_with(start)) return ImageFormat::kTiff;
  }
  refuse(file);
}

}  // namespace

const char* name_of(ImageFormat format) {
  constexpr std::array kNames{"JPEG", "PNG", "GIF", "WebP", "TIFF"};
  return kNames[static_cast<size_t>(format)];
}

bool has_decoder(ImageFormat format) {
  switch (format) {
    case ImageFormat::kWebp: return GALLOP_WEBP != 0;
    case ImageFormat::kTiff: return GALLOP_TIFF != 0;
    default: return true;
  }
}

ImageFormat detect_format(std::string_view start) {
  const ImageFormat format = format_of(start);
  if (has_decoder(format)) return format;
  const char* const library = format == ImageFormat::kWebp ? "libwebp" : "libtiff";
  throw DataError(fmt::format(
      "is a {} image, and this Gallop was built without {}; install {}-dev and build again",
      name_of(format), library, library));
}

bool has_image_ending(std::string_view name) {
  return std::find(kEndings.begin(), kEndings.end(), ending_of(name)) != kEndings.end();
}

bool is_unread_image(std::string_view name) {
  return std::find(kUnreadEndings.begin(), kUnreadEndings.end(), ending_of(name)) !=
         kUnreadEndings.end();
}

std::string image_endings(std::string_view last_word) {
  std::vector<std::string> endings;
  for (const std::string_view ending : kEndings) endings.push_back("." + std::string(ending));
  return join_names(endings, last_word);
}

}  // namespace gallop::data
