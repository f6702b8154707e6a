#include "gallop/data/image_codec.h"

#include <cstdlib>

#include <png.h>
#include <zlib.h>

#include "gallop/data/channels.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

Image decoded(const std::string& file, const DecodeRequest& request = {}) {
  static ImageDecoder decoder;
  Image image;
  decoder.decode(file, request, image);
  return image;
}

std::string decode_error(const std::string& file) {
  return data_error([&] { decoded(file); });
}

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.height, b.height);
  EXPECT_EQ(a.width, b.width);
  EXPECT_EQ(a.channels, b.channels);
  int largest = 0;
  for (size_t i = 0; i < b.pixels.size(); ++i) {
    largest = std::max(largest, std::abs(int{a.pixels[i]} - int{b.pixels[i]}));
  }
  return largest;
}

Image smooth(int height, int width, int channels) {
  Image image{.height = height, .width = width, .channels = channels, .pixels = {}};
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < channels; ++c) {
        image.pixels.push_back(static_cast<uint8_t>(40 + 30 * c + y + x));
      }
    }
  }
  return image;
}

Image gray_version(const Image& picture) {
  Image gray = picture;
  gray.pixels.resize(picture.pixels.size() / 3);
  gray.channels = 1;
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    gray.pixels[i] = gray_of(picture.pixels.data() + 3 * i);
  }
  return gray;
}

TEST(Jpeg, ComesOutNearToWhatWentIn) {
  const Image color = smooth(33, 47, 3), gray = smooth(20, 31, 1);
  for (const bool progressive : {false, true}) {
    for (const bool full_chroma : {false, true}) {
      const std::string file =
          make_jpeg(color, {.progressive = progressive, .full_chroma = full_chroma});
      EXPECT_LE(largest_difference(decoded(file), color), 6);
      EXPECT_LE(largest_difference(decoded(file, {.channels = 0}), color), 6);
      EXPECT_LE(largest_difference(decoded(file, {.channels = 1}), gray_version(color)), 6);
    }
  }
  const std::string file = make_jpeg(gray);
  EXPECT_LE(largest_difference(decoded(file, {.channels = 1}), gray), 3);
  EXPECT_LE(largest_difference(decoded(file, {.channels = 0}), gray), 3);
  const Image repeated = decoded(file, {.channels = 3});
  EXPECT_EQ(repeated.channels, 3);
  EXPECT_EQ(repeated.pixels[3], repeated.pixels[5]);
}

TEST(Jpeg, ConvertsInks) {
  Image inks{.height = 16, .width = 16, .channels = 4, .pixels = {}};
  for (int i = 0; i < 256; ++i) inks.pixels.insert(inks.pixels.end(), {200, 100, 50, 128});
  std::string file = make_jpeg(inks, {.full_chroma = false, .cmyk = true});
  // Inks are stored inverted.
  const Image inverted = decoded(file);
  EXPECT_NEAR(inverted.pixels[0], 200 * 128 / 255, 2);
  EXPECT_NEAR(inverted.pixels[1], 100 * 128 / 255, 2);
  EXPECT_NEAR(inverted.pixels[2], 50 * 128 / 255, 2);
  file.erase(file.find("\xff\xee"), 16);
  EXPECT_EQ(decoded(file).pixels, inverted.pixels) << "also without Adobe's marker";
  EXPECT_EQ(decoded(file, {.channels = 1}).channels, 1);
  EXPECT_EQ(decoded(file, {.channels = 0}).channels, 3);
}

TEST(Jpeg, DecodesAtReducedScaleWhileTheShorterSideStaysLongEnough) {
  const std::string file = make_jpeg(smooth(100, 81, 1), {.quality = 80});
  const auto size = [&](int min_side) {
    const Image image = decoded(file, {.channels = 1, .min_side = min_side});
    return std::pair(image.height, image.width);
  };
  EXPECT_EQ(size(0), std::pair(100, 81));
  EXPECT_EQ(size(42), std::pair(100, 81));
  EXPECT_EQ(size(41), std::pair(50, 41));
  EXPECT_EQ(size(22), std::pair(50, 41));
  EXPECT_EQ(size(21), std::pair(25, 21));
  EXPECT_EQ(size(11), std::pair(13, 11));
  EXPECT_EQ(size(1), std::pair(13, 11));
  EXPECT_EQ(decoded(file, {.channels = 1}).height, 100) << "the scale does not stay";
}

// Chooses a fixed region and counts the requests.
class FixedRegion final : public RegionChooser {
 public:
  explicit FixedRegion(const Region& region) : region_(region) {}
  Region choose(int height, int width) override {
    ++asked;
    EXPECT_EQ(height, 90);
    EXPECT_EQ(width, 120);
    return region_;
  }
  int asked = 0;

 private:
  Region region_;
};

TEST(Jpeg, DecodesNoMoreThanTheRegion) {
  for (const bool progressive : {false, true}) {
    const std::string file = make_jpeg(make_picture(90, 120, 3, 4), {.progressive = progressive});
    const Image whole = decoded(file);
    for (const Region& region :
         {Region{0, 0, 90, 120}, Region{0, 0, 10, 10}, Region{33, 50, 20, 25},
          Region{80, 100, 10, 20}, Region{5, 0, 1, 120}, Region{0, 119, 90, 1}}) {
      FixedRegion chooser(region);
      const Image part = decoded(file, {.region = &chooser});
      EXPECT_EQ(chooser.asked, 1);
      EXPECT_EQ(part.reduction, 1);
      ASSERT_LE(part.top, region.top);
      ASSERT_LE(part.left, region.left);
      ASSERT_GE(part.top + part.height, region.top + region.height);
      ASSERT_GE(part.left + part.width, region.left + region.width);
      EXPECT_LT(part.width, region.width + 32);
      for (int y = 0; y < part.height; ++y) {
        for (int x = 0; x < part.width; ++x) {
          const int at = 3 * ((y + part.top) * 120 + x + part.left);
          ASSERT_EQ(part.pixels[static_cast<size_t>(3 * (y * part.width + x))],
                    whole.pixels[static_cast<size_t>(at)])
              << y << " " << x;
        }
      }
    }
  }
}

TEST(Jpeg, ReducesByTheRegionsShorterSide) {
  const std::string file = make_jpeg(make_picture(90, 120, 3, 4));
  FixedRegion chooser({41, 30, 40, 60});
  const Image part = decoded(file, {.channels = 1, .min_side = 10, .region = &chooser});
  EXPECT_EQ(part.reduction, 4);
  EXPECT_EQ(part.top, 40);
  EXPECT_LE(part.left, 30);
  EXPECT_EQ(part.height, 11);
  FixedRegion small({41, 30, 10, 60});
  EXPECT_EQ(decoded(file, {.channels = 1, .min_side = 10, .region = &small}).reduction, 1);
}

TEST(Jpeg, TakesAWholeFileWhereverTheRegionEnds) {
  Image noise = make_picture(90, 120, 3, 4);
  uint32_t state = 3;
  for (uint8_t& value : noise.pixels) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<uint8_t>(state >> 24);
  }
  for (const bool progressive : {false, true}) {
    const std::string file = make_jpeg(noise, {.progressive = progressive, .full_chroma = false});
    for (int end = 1; end <= 90; ++end) {
      for (const int min_side : {0, 1}) {
        FixedRegion chooser({end - 1, 0, 1, 120});
        EXPECT_NO_THROW(decoded(file, {.min_side = min_side, .region = &chooser})) << end;
      }
    }
  }
}

TEST(Jpeg, NoticesATruncationBelowTheRegion) {
  const std::string file = make_jpeg(make_picture(90, 120, 3, 4));
  for (const size_t bytes : {file.size() * 3 / 4, file.size() - 2}) {
    FixedRegion chooser({0, 0, 8, 8});
    EXPECT_TRUE(contains(data_error([&] { decoded(file.substr(0, bytes), {.region = &chooser}); }),
                         "Premature end"));
  }
  FixedRegion outside({80, 0, 11, 8});
  EXPECT_THROW(decoded(file, {.region = &outside}), InternalError);
  EXPECT_EQ(decoded(file).width, 120) << "the decoder works on after errors";
}

TEST(Jpeg, RefusesEveryTruncation) {
  for (const bool progressive : {false, true}) {
    const std::string file =
        make_jpeg(make_picture(24, 24, 3, 1), {.progressive = progressive, .full_chroma = false});
    for (size_t bytes = 0; bytes < file.size(); ++bytes) {
      const std::string message = decode_error(file.substr(0, bytes));
      EXPECT_FALSE(message.empty()) << bytes;
    }
    EXPECT_EQ(decoded(file).height, 24) << "the decoder works on after errors";
  }
  EXPECT_EQ(decode_error(""), "the file is empty");
  EXPECT_TRUE(contains(decode_error("\xff\xd8"), "truncated: only 2 bytes"));
}

TEST(Jpeg, CutInTheMiddleIsAnErrorAndNotAGrayHalf) {
  const std::string file = make_jpeg(make_picture(64, 64, 3, 1));
  EXPECT_TRUE(
      contains(decode_error(file.substr(0, file.size() / 2)), "damaged JPEG: Premature end"));
  EXPECT_TRUE(
      contains(decode_error(file.substr(0, file.size() - 2)), "damaged JPEG: Premature end"));
}

TEST(Jpeg, ReadsAcrossBytesTooManyBeforeAMarker) {
  const std::string file = make_jpeg(make_picture(24, 24, 3, 1));
  const std::string end = file.substr(file.size() - 2);
  const std::string longer = file.substr(0, file.size() - 2) + std::string(7, '\0') + end;
  JpegDecoder decoder;
  Image whole, read;
  decoder.decode(file, {}, whole);
  decoder.decode(longer, {}, read);
  EXPECT_EQ(read.pixels, whole.pixels);
}

TEST(Jpeg, RefusesSizesThatTheFileCannotHold) {
  std::string file = make_jpeg(make_picture(16, 16, 3, 1));
  const size_t frame = file.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  file.replace(frame + 5, 4, "\x3f\xff\x3f\xff");
  EXPECT_TRUE(contains(decode_error(file), "cannot hold 16383 x 16383 pixels"));
  file.replace(frame + 5, 4, "\xff\x00\xff\x00");
  EXPECT_FALSE(decode_error(file).empty());
  file.replace(frame + 5, 4, std::string("\0\x10\0\0", 4));
  EXPECT_FALSE(decode_error(file).empty());
}

TEST(Jpeg, RefusesEndlessScans) {
  const std::string file =
      make_jpeg(make_picture(16, 16, 1, 1), {.progressive = true, .full_chroma = false});
  // The last scan refines existing values, so it may be repeated any number of times.
  const size_t scan = file.rfind("\xff\xda");
  const size_t tables = file.rfind("\xff\xc4", scan);
  const std::string last = file.substr(tables, file.size() - 2 - tables);
  std::string endless = file.substr(0, file.size() - 2);
  for (int i = 0; i < 200; ++i) endless += last;
  EXPECT_FALSE(decode_error(endless + "\xff\xd9").empty());
}

TEST(Png, DecodesEveryColorTypeAndDepth) {
  const Image color = make_picture(19, 23, 3, 1), gray = make_picture(19, 23, 1, 2);
  for (const bool interlaced : {false, true}) {
    EXPECT_EQ(decoded(make_png(19, 23, color.pixels, {.interlaced = interlaced})).pixels,
              color.pixels);
    const std::string gray_file = make_png(
        19, 23, gray.pixels, {.color_type = PNG_COLOR_TYPE_GRAY, .interlaced = interlaced});
    EXPECT_EQ(decoded(gray_file, {.channels = 1}).pixels, gray.pixels);
    EXPECT_EQ(decoded(gray_file, {.channels = 0}).channels, 1);
    EXPECT_EQ(decoded(gray_file).pixels[3 * 40 + 2], gray.pixels[40]);
  }
  EXPECT_EQ(decoded(make_png(19, 23, color.pixels), {.channels = 1}).pixels[7],
            gray_of(color.pixels.data() + 21));
}

TEST(Png, DropsAlphaAndScalesSixteenBits) {
  std::vector<uint8_t> alpha, deep;
  const Image color = make_picture(6, 5, 3, 3);
  for (size_t i = 0; i < 30; ++i) {
    for (size_t c = 0; c < 3; ++c) {
      const uint8_t value = color.pixels[3 * i + c];
      alpha.push_back(value);
      deep.insert(deep.end(), {value, value});  // 257 times the value.
    }
    alpha.push_back(static_cast<uint8_t>(i));
  }
  EXPECT_EQ(decoded(make_png(6, 5, alpha, {.color_type = PNG_COLOR_TYPE_RGB_ALPHA})).pixels,
            color.pixels);
  EXPECT_EQ(decoded(make_png(6, 5, deep, {.bit_depth = 16})).pixels, color.pixels);
  EXPECT_EQ(decoded(make_png(1, 2, {7, 255, 9, 0}, {.color_type = PNG_COLOR_TYPE_GRAY_ALPHA}),
                    {.channels = 1})
                .pixels,
            (std::vector<uint8_t>{7, 9}));
}

TEST(Png, ExpandsPalettesAndSingleBits) {
  const PngOptions palette{.color_type = PNG_COLOR_TYPE_PALETTE,
                           .bit_depth = 2,
                           .palette = {1, 2, 3, 40, 50, 60, 7, 8, 9},
                           .transparency = {0, 128}};
  EXPECT_EQ(decoded(make_png(1, 3, {0b01'10'00'00}, palette)).pixels,
            (std::vector<uint8_t>{40, 50, 60, 7, 8, 9, 1, 2, 3}));
  EXPECT_EQ(
      decoded(make_png(1, 3, {0b101'00000}, {.color_type = PNG_COLOR_TYPE_GRAY, .bit_depth = 1}),
              {.channels = 1})
          .pixels,
      (std::vector<uint8_t>{255, 0, 255}));
}

TEST(Png, RefusesEveryTruncationAndChangedByte) {
  const std::string file = make_png(8, 8, make_picture(8, 8, 3, 1).pixels);
  for (size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_FALSE(decode_error(file.substr(0, bytes)).empty()) << bytes;
  }
  for (size_t at = 8; at < file.size() - 12; ++at) {
    std::string damaged = file;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_FALSE(decode_error(damaged).empty()) << at;
  }
}

TEST(Png, RefusesSizesThatTheFileCannotHold) {
  std::string file = make_png(8, 8, make_picture(8, 8, 1, 1).pixels, {.color_type = 0});
  const auto with_size = [&file](uint32_t side) {
    for (const size_t at : {size_t{16}, size_t{20}}) {
      for (size_t i = 0; i < 4; ++i) file[at + i] = static_cast<char>(side >> (24 - 8 * i));
    }
    const uint32_t crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(file.data()) + 12, 17));
    for (size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
    return file;
  };
  EXPECT_TRUE(contains(decode_error(with_size(16'000)), "cannot hold 16000 x 16000"));
  EXPECT_TRUE(contains(decode_error(with_size(1'000'000)), "are allowed in all"));
  EXPECT_FALSE(decode_error(with_size(0x7fffffff)).empty());
  EXPECT_FALSE(decode_error(with_size(0)).empty());
}

TEST(ImageDecoder, NamesOtherFormats) {
  EXPECT_EQ(
      decode_error("BM and more"),
      "is a BMP image, which is not read; convert it to PNG or JPEG, as ImageMagick's mogrify "
      "does");
  const std::string avif(
      "\0\0\0\x20"
      "ftypavif",
      12);
  EXPECT_TRUE(decode_error(avif).starts_with("is an AVIF, HEIC or video file, which is not read"));
  EXPECT_TRUE(decode_error("P6\n4 4\n255\n").starts_with("is a PPM, PGM, PBM or PAM image"));
  EXPECT_TRUE(decode_error("8BPS and more").starts_with("is a Photoshop image"));
  EXPECT_EQ(decode_error("Page 12, world"), "neither JPEG, PNG, GIF, WebP nor TIFF");
  EXPECT_EQ(decode_error("hello, world"), "neither JPEG, PNG, GIF, WebP nor TIFF");
}

TEST(ImageDecoder, ReusesALargerBuffer) {
  ImageDecoder decoder;
  Image image;
  decoder.decode(make_jpeg(smooth(32, 32, 3)), {}, image);
  const uint8_t* buffer = image.pixels.data();
  decoder.decode(make_png(4, 4, smooth(4, 4, 3).pixels), {}, image);
  EXPECT_EQ(image.height, 4);
  decoder.decode(make_jpeg(smooth(32, 32, 3)), {}, image);
  EXPECT_EQ(image.pixels.data(), buffer);
}

}  // namespace
}  // namespace gallop::data
