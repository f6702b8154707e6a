// Image files of all formats against Pillow (tests/parity/make_image_formats.py made the fixture).
#include <cstring>
#include <map>

#include <ATen/core/Tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/data/formats/image_format.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_header.h"
#include "gallop/data/readers.h"
#include "gallop/tensor/safetensors.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"
#include "unit/fixtures.h"

namespace gallop::data {
namespace {

struct Case {
  std::string file;
  at::Tensor pixels;   ///< [H, W, 3]
  at::Tensor indices;  ///< Of masks: [H, W]
};

std::map<std::string, Case> read_cases() {
  std::map<std::string, Case> cases;
  const Safetensors stored = read_safetensors(fixtures() / "image_formats.safetensors");
  for (const auto& [name, tensor] : stored.tensors) {
    const size_t dot = name.rfind('.');
    Case& one = cases[name.substr(0, dot)];
    const std::string part = name.substr(dot + 1);
    if (part == "pixels") one.pixels = tensor.clone();
    if (part == "indices") one.indices = tensor.clone();
    if (part == "file") {
      one.file.assign(static_cast<const char*>(tensor.const_data_ptr()),
                      static_cast<size_t>(tensor.numel()));
    }
  }
  return cases;
}

/// Cases whose names begin with a prefix, except those of decoders that this build does not have.
/// Fails the test if the fixture has none.
std::map<std::string, Case> cases_of(const std::string& prefix) {
  static const auto all = read_cases();
  std::map<std::string, Case> found;
  bool has_case = false;
  for (const auto& [name, one] : all) {
    if (!name.starts_with(prefix)) continue;
    has_case = true;
    const bool is_webp = one.file.starts_with("RIFF");
    const bool is_tiff = one.file.starts_with("II") || one.file.starts_with("MM");
    if (is_webp && !has_decoder(ImageFormat::kWebp)) continue;
    if (is_tiff && !has_decoder(ImageFormat::kTiff)) continue;
    found.emplace(name, one);
  }
  EXPECT_TRUE(has_case) << prefix;
  return found;
}

std::map<std::string, Case> pictures() {
  auto found = cases_of("");
  std::erase_if(found, [](const auto& entry) { return !entry.second.pixels.defined(); });
  return found;
}

Image decoded(const std::string& file, const DecodeRequest& request = {}) {
  static ImageDecoder decoder;
  Image image;
  decoder.decode(file, request, image);
  return image;
}

::testing::AssertionResult equals(const Image& image, const at::Tensor& pixels) {
  if (image.height != pixels.size(0) || image.width != pixels.size(1)) {
    return ::testing::AssertionFailure() << image.height << " x " << image.width << " pixels";
  }
  const auto* const expected = pixels.const_data_ptr<uint8_t>();
  for (int64_t i = 0; i < pixels.numel(); ++i) {
    const int value = image.pixels[static_cast<size_t>(i)];
    if (value == expected[i]) continue;
    return ::testing::AssertionFailure()
           << "value " << i << " is " << value << " instead of " << int{expected[i]};
  }
  return ::testing::AssertionSuccess();
}

TEST(ImageFormats, HavePillowsPixels) {
  const auto cases = pictures();
  EXPECT_GE(cases.size(), 20U);
  for (const auto& [name, one] : cases) EXPECT_TRUE(equals(decoded(one.file), one.pixels)) << name;
}

TEST(ImageFormats, HaveGrayAsIsAndOfColors) {
  for (const auto& [name, one] : pictures()) {
    const Image color = decoded(one.file), gray = decoded(one.file, {.channels = 1});
    const Image stored = decoded(one.file, {.channels = 0});
    ASSERT_EQ(color.channels, 3) << name;
    ASSERT_EQ(gray.channels, 1) << name;
    const size_t pixels = static_cast<size_t>(one.pixels.numel() / 3);
    for (size_t i = 0; i < pixels; ++i) {
      const uint8_t* const rgb = color.pixels.data() + 3 * i;
      const int expected = (19595 * rgb[0] + 38470 * rgb[1] + 7471 * rgb[2] + 32768) >> 16;
      // libjpeg takes the luma of YCbCr as it is stored.
      const bool is_jpeg = detect_format(one.file) == ImageFormat::kJpeg;
      ASSERT_NEAR(gray.pixels[i], expected, is_jpeg ? 1 : 0) << name;
      if (stored.channels == 1) {
        ASSERT_EQ(stored.pixels[i], rgb[0]) << name;
      } else {
        ASSERT_EQ(stored.pixels[3 * i + 1], rgb[1]) << name;
      }
    }
  }
}

TEST(ImageFormats, HaveTheHeaderOfTheDecodedImage) {
  const TestFolder folder;
  for (const auto& [name, one] : pictures()) {
    const Image image = decoded(one.file, {.channels = 0});
    const ImageShape shape{image.height, image.width, image.channels};
    const auto bytes = static_cast<int64_t>(one.file.size());
    const auto header = parse_image_header(one.file, bytes);
    ASSERT_TRUE(header) << name;
    EXPECT_EQ(oriented(*header).shape, shape) << name;
    // In a file between others, as in an archive.
    const fs::path path = folder.add("x.bin", "before" + one.file + std::string(100, 'x'));
    std::vector<char> buffer;
    const ImageHeader read = read_image_header(open_for_reading(path), path, 6, bytes, buffer);
    EXPECT_EQ(oriented(read).shape, shape) << name;
    EXPECT_EQ(read.orientation, header->orientation) << name;
    for (size_t part = 8; part < one.file.size(); part = part * 3 / 2) {
      const auto start = parse_image_header(one.file.substr(0, part), bytes);
      if (start) {
        EXPECT_EQ(start->shape, header->shape) << name << " " << part;
      }
    }
  }
}

// A TIFF directory at the end of a large file is read without the file.
TEST(ImageFormats, ReadNoMoreThanTheDirectoryOfTiff) {
  const auto cases = cases_of("tiff.tiles");
  if (cases.empty()) GTEST_SKIP() << "built without libtiff";
  const std::string& file = cases.begin()->second.file;
  const TestFolder folder;
  const size_t data = 1 << 20;
  std::string longer = file.substr(0, 8) + std::string(data, '\0') + file.substr(8);
  for (size_t i = 4; i < 8; ++i) longer[i] = file[i];
  uint32_t directory = 0;
  std::memcpy(&directory, file.data() + 4, 4);
  directory += data;
  std::memcpy(longer.data() + 4, &directory, 4);
  std::vector<char> buffer;
  const auto header = read_image_header(open_for_reading(folder.add("x.tif", longer)), "x.tif", 0,
                                        static_cast<int64_t>(longer.size()), buffer);
  EXPECT_EQ(header.shape, (ImageShape{20, 40, 3}));
  EXPECT_LT(buffer.size(), data);
}

TEST(ImageFormats, KeepTheStoredOrientationIfAsked) {
  for (const char* format : {"tiff", "webp"}) {
    for (const auto& [name, one] : cases_of(std::string(format) + ".orientation_6")) {
      const Image stored = decoded(one.file, {.orient = false}), turned = decoded(one.file);
      EXPECT_EQ(stored.height, turned.width) << name;
      EXPECT_EQ(exif_orientation(one.file), 6) << name;
    }
  }
}

TEST(ImageFormats, HaveTheIndicesOfMasks) {
  for (const auto& [name, one] : cases_of("mask.")) {
    const Image mask = decoded(one.file, {.channels = 0, .indices = true});
    EXPECT_EQ(mask.channels, 1) << name;
    EXPECT_TRUE(equals(mask, one.indices)) << name;
  }
}

// Each reader finds the files by their endings, and skips a damaged one or names it.
TEST(ImageFormats, AreReadFromFoldersAndArchives) {
  std::vector<std::pair<std::string, std::string>> members;
  std::vector<at::Tensor> pixels;
  for (const char* name :
       {"gif.palette", "jpeg.ycck", "png.palette", "tiff.rgb_lzw", "webp.animation"}) {
    const auto found = cases_of(name);
    if (found.empty()) continue;
    const std::string ending = std::string(name).substr(0, std::string(name).find('.'));
    members.emplace_back(fmt::format("cat/{}.{}", members.size(), ending),
                         found.begin()->second.file);
    pixels.push_back(found.begin()->second.pixels);
  }
  const std::string damaged = members[0].second.substr(0, members[0].second.size() / 2);
  members.emplace_back("dog/x.gif", damaged);
  const TestFolder folder, archive;
  for (const auto& [name, content] : members) folder.add(name, content);
  archive.add("a.tar", make_tar(members));
  const auto of_folder = read_folder({}, {.path = folder.name()});
  const auto of_archive = read_tar({}, {.path = archive.name()});
  for (const ImageSet* images : {of_folder->train.get(), of_archive->train.get()}) {
    ASSERT_EQ(images->size(), static_cast<int64_t>(members.size()));
    Image image;
    for (size_t i = 0; i < pixels.size(); ++i) {
      images->read(static_cast<int64_t>(i), {}, image);
      EXPECT_TRUE(equals(image, pixels[i])) << images->describe(static_cast<int64_t>(i));
    }
    const auto last = static_cast<int64_t>(pixels.size());
    EXPECT_TRUE(contains(data_error([&] { images->read(last, {}, image); }),
                         "dog/x.gif: damaged GIF: the pixels of the image end too early"));
  }
}

TEST(ImageFormats, RefuseEveryTruncation) {
  for (const auto& [name, one] : pictures()) {
    if (one.file.size() > 6000) continue;
    for (size_t bytes = 0; bytes < one.file.size(); ++bytes) {
      const std::string start = one.file.substr(0, bytes);
      try {
        const Image image = decoded(start);
        // Only GIF and TIFF may go on after the pixels.
        ASSERT_TRUE(start.starts_with("GIF") || start.starts_with("II")) << name << " " << bytes;
        ASSERT_TRUE(equals(image, one.pixels)) << name << " " << bytes;
      } catch (const DataError& error) {
        ASSERT_FALSE(std::string(error.what()).empty()) << name << " " << bytes;
      }
    }
    EXPECT_TRUE(equals(decoded(one.file), one.pixels)) << name << ": works on after errors";
  }
}

TEST(ImageFormats, SayWhatIsNotRead) {
  const std::map<std::string, std::string> expected{
      {"bits12", "is a TIFF image of 12 bits per sample, which is not read"},
      {"floats", "of floating-point numbers"},
      {"inks", "of other inks than CMYK"},
      {"jpeg6", "with the compression "},
      {"lab", "of Lab colors"},
      {"logluv", "of photometric interpretation 32845"},
      {"signed", "of signed numbers"}};
  for (const auto& [name, message] : expected) {
    for (const auto& [_, one] : cases_of("refused." + name)) {
      EXPECT_TRUE(contains(data_error([&] { decoded(one.file); }), message)) << name;
    }
  }
  const std::string wide = cases_of("refused.wide_mask").begin()->second.file;
  EXPECT_TRUE(contains(data_error([&] { decoded(wide, {.indices = true}); }), "16 bits per pixel"));
  EXPECT_NO_THROW(decoded(wide));
}

TEST(ImageFormats, SayThatATiffEndsWithinItsPixels) {
  const auto cases = cases_of("tiff.rgb16_le");
  if (cases.empty()) GTEST_SKIP() << "built without libtiff";
  std::string file = cases.begin()->second.file;
  uint32_t directory = 0;
  std::memcpy(&directory, file.data() + 4, 4);
  uint16_t entries = 0;
  std::memcpy(&entries, file.data() + directory, 2);
  for (size_t i = 0; i < entries; ++i) {
    const size_t at = directory + 2 + 12 * i;
    uint16_t tag = 0;
    std::memcpy(&tag, file.data() + at, 2);
    constexpr uint16_t kStripOffsets = 273;
    if (tag != kStripOffsets) continue;
    const auto offset = static_cast<uint32_t>(file.size() - 20);
    std::memcpy(file.data() + at + 8, &offset, 4);
  }
  EXPECT_EQ(data_error([&] { decoded(file); }), "truncated TIFF: the file ends within its pixels");
}

TEST(ImageFormats, RefuseSizesThatTheFileCannotHold) {
  std::string gif = cases_of("gif.part").begin()->second.file;
  gif.replace(6, 4, "\xff\xff\xff\xff");
  EXPECT_TRUE(contains(data_error([&] { decoded(gif); }), "are allowed in all"));
  for (const auto& [name, one] : cases_of("tiff.rgb16_le")) {
    std::string tiff = one.file;
    uint32_t directory = 0;
    std::memcpy(&directory, tiff.data() + 4, 4);
    const uint32_t side = 16'000, wide = 0x7fffffff;
    std::memcpy(tiff.data() + directory + 10, &side, 4);
    std::memcpy(tiff.data() + directory + 22, &side, 4);
    EXPECT_TRUE(contains(data_error([&] { decoded(tiff); }), "cannot hold 16000 x 16000"));
    std::memcpy(tiff.data() + directory + 10, &wide, 4);
    EXPECT_TRUE(contains(data_error([&] { decoded(tiff); }), "are allowed in all"));
  }
  for (const auto& [name, one] : cases_of("webp.animation")) {
    std::string webp = one.file;
    webp.replace(24, 6, "\x1f\x4e\x00\x1f\x4e\x00", 6);
    EXPECT_TRUE(contains(data_error([&] { decoded(webp); }), "are allowed in all"));
  }
}

TEST(ImageFormats, AreKnownByTheirEndings) {
  for (const char* name : {"a.jpg", "b.JPEG", "c.png", "d.gif", "e.WebP", "f.tif", "x/g.1.TIFF"}) {
    EXPECT_TRUE(has_image_ending(name)) << name;
    EXPECT_FALSE(is_unread_image(name)) << name;
  }
  EXPECT_TRUE(is_unread_image("a.bmp"));
  EXPECT_FALSE(has_image_ending("gif"));
  EXPECT_EQ(image_endings("nor"), ".jpg, .jpeg, .png, .gif, .webp, .tif nor .tiff");
}

}  // namespace
}  // namespace gallop::data
