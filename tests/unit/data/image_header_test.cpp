#include "gallop/data/image_header.h"

#include "gallop/data/image_codec.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

std::optional<ImageHeader> header_of(const std::string& start, size_t file_bytes) {
  return parse_image_header(start, static_cast<int64_t>(file_bytes));
}

std::string header_error(const std::string& file) {
  return data_error([&] { header_of(file, file.size()); });
}

TEST(ImageHeader, SaysWhatDecodingGives) {
  const Image color = make_picture(9, 14, 3, 1), gray = make_picture(7, 5, 1, 1);
  const std::vector<std::string> files{
      make_jpeg(color),
      make_jpeg(color, {.progressive = true, .full_chroma = false}),
      make_jpeg(gray),
      make_jpeg(make_picture(8, 8, 4, 1), {.cmyk = true}),
      make_png(9, 14, color.pixels),
      make_png(7, 5, gray.pixels, {.color_type = 0, .interlaced = true}),
      make_png(1, 3, {0b01'10'00'00},
               {.color_type = 3, .bit_depth = 2, .palette = {1, 2, 3, 4, 5, 6, 7, 8, 9}}),
      make_png(2, 2, std::vector<uint8_t>(8, 7), {.color_type = 4}),
      make_png(2, 2, std::vector<uint8_t>(32, 7), {.color_type = 6, .bit_depth = 16})};
  for (size_t i = 0; i < files.size(); ++i) {
    ImageDecoder decoder;
    Image image;
    decoder.decode(files[i], {.channels = 0}, image);
    const auto header = header_of(files[i], files[i].size());
    ASSERT_TRUE(header) << i;
    EXPECT_EQ(header->shape, (ImageShape{image.height, image.width, image.channels})) << i;
    EXPECT_EQ(header->orientation, 1);
  }
}

TEST(ImageHeader, FindsTheOrientationInBothFormatsAndOrders) {
  const std::string jpeg = make_jpeg(make_picture(8, 12, 3, 1));
  const std::string png = make_png(8, 12, make_picture(8, 12, 3, 1).pixels);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const bool little_endian : {true, false}) {
      for (const std::string& plain : {jpeg, png}) {
        const std::string file = with_exif(plain, make_exif(orientation, little_endian));
        EXPECT_EQ(exif_orientation(file), orientation);
        const ImageHeader header = *header_of(file, file.size());
        EXPECT_EQ(header.orientation, orientation);
        EXPECT_EQ(header.shape, (ImageShape{8, 12, 3})) << "as stored";
        EXPECT_EQ(oriented(header).shape.width, orientation < 5 ? 12 : 8);
        EXPECT_EQ(stored(header).orientation, 1);
      }
    }
  }
}

TEST(ImageHeader, TakesDamagedExifAsNone) {
  const std::string jpeg = make_jpeg(make_picture(8, 12, 3, 1));
  std::string far = make_exif(6), many = make_exif(6), text = make_exif(6);
  far[4] = '\x7f';
  far[7] = '\x7f';
  many[8] = many[9] = '\xff';
  many[10] = '\0';
  text[12] = 2;
  for (const std::string& exif :
       {std::string(), std::string("II"), std::string("XX*\0\x08\0\0\0", 8), make_exif(0),
        make_exif(9), make_exif(6).substr(0, 12), far, many, text}) {
    EXPECT_EQ(exif_orientation(with_exif(jpeg, exif)), 1);
  }
  EXPECT_EQ(exif_orientation("no image"), 1);
  EXPECT_EQ(exif_orientation(""), 1);
}

TEST(ImageHeader, NeedsNoMoreOfAFileThanItsBeginning) {
  const Image picture = make_picture(40, 50, 3, 1);
  for (const std::string& file : {with_exif(make_jpeg(picture), make_exif(5)),
                                  with_exif(make_png(40, 50, picture.pixels), make_exif(5))}) {
    bool was_enough = false;
    for (size_t bytes = 8; bytes <= file.size(); ++bytes) {
      const auto header = header_of(file.substr(0, bytes), file.size());
      EXPECT_TRUE(header || !was_enough) << "more of it does no harm";
      was_enough = header.has_value();
      if (header) {
        EXPECT_EQ(header->orientation, 5);
      }
    }
    EXPECT_TRUE(was_enough);
  }
}

TEST(ImageHeader, IsReadBehindLargeSegments) {
  const TestFolder folder;
  // 40 segments of 60 KB, as for color profiles and thumbnails.
  std::string segments;
  for (int i = 0; i < 40; ++i)
    segments += std::string("\xff\xe2\xea\x62", 4) + std::string(60'000, 'x');
  const std::string plain = make_jpeg(make_picture(8, 12, 3, 1));
  const std::string file = plain.substr(0, 2) + segments + plain.substr(2);
  const fs::path path = folder.add("x.bin", "before" + file + "behind");
  std::vector<char> buffer;
  const ImageHeader header =
      read_image_header(open_for_reading(path), path, 6, static_cast<int64_t>(file.size()), buffer);
  EXPECT_EQ(header.shape, (ImageShape{8, 12, 3}));
}

TEST(ImageHeader, SaysWhatIsWrong) {
  EXPECT_TRUE(contains(header_error(""), "the file is empty"));
  EXPECT_TRUE(contains(header_error("abc"), "truncated: only 3 bytes"));
  EXPECT_TRUE(contains(header_error("BM........."), "a BMP image"));
  const std::string jpeg = make_jpeg(make_picture(8, 12, 3, 1));
  const std::string png = make_png(8, 12, make_picture(8, 12, 3, 1).pixels);
  EXPECT_TRUE(contains(header_error(jpeg.substr(0, 30)), "JPEG: the file ends in its header"));
  EXPECT_TRUE(contains(header_error(png.substr(0, 30)), "PNG: the file ends in its header"));
  EXPECT_TRUE(contains(header_error(jpeg.substr(0, 2) + jpeg.substr(jpeg.find("\xff\xda"))),
                       "no frame before its data"));
  const std::string gif = "GIF89a" + std::string("\x02\0\x01\0\0\0\0", 7);
  EXPECT_TRUE(contains(header_error(gif), "damaged GIF: the file ends in its header"));
  EXPECT_TRUE(contains(header_error(gif + ";"), "damaged GIF: it has no image"));
  std::string wide = png;
  wide.replace(16, 8, std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));
  EXPECT_TRUE(contains(header_error(wide), "2147483647 x 2147483647 pixels"));
  std::string none = png;
  none.replace(16, 4, 4, '\0');
  EXPECT_TRUE(contains(header_error(none), "8 x 0 pixels"));
}

}  // namespace
}  // namespace gallop::data
