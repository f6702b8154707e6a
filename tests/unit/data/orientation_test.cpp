#include "gallop/data/orientation.h"

#include "gallop/data/file_images.h"
#include "gallop/data/image_codec.h"
#include "gallop/data/image_shaper.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

// The stored pixel displayed at (y, x); Exif 2.3 defines the orientations by the displayed position
// of the stored row 0 and column 0.
uint8_t seen(const Image& stored, int orientation, int y, int x, int c) {
  const int bottom = stored.height - 1, right = stored.width - 1;
  int row = y, column = x;
  switch (orientation) {
    case 2: column = right - x; break;  // Top, right.
    case 3:
      row = bottom - y;
      column = right - x;
      break;                          // Bottom, right.
    case 4: row = bottom - y; break;  // Bottom, left.
    case 5:
      row = x;
      column = y;
      break;  // Left, top.
    case 6:
      row = bottom - x;
      column = y;
      break;  // Right, top.
    case 7:
      row = bottom - x;
      column = right - y;
      break;  // Right, bottom.
    case 8:
      row = x;
      column = right - y;
      break;  // Left, bottom.
    default: break;
  }
  return stored.pixels[static_cast<size_t>((row * stored.width + column) * stored.channels + c)];
}

Image decoded(const std::string& file, const DecodeRequest& request) {
  ImageDecoder decoder;
  Image image;
  decoder.decode(file, request, image);
  return image;
}

TEST(Orientation, TurnsImagesOfBothFormats) {
  const Image color = make_picture(6, 9, 3, 4), gray = make_picture(6, 9, 1, 4);
  for (const std::string& plain : {make_png(6, 9, color.pixels), make_jpeg(color), make_jpeg(gray),
                                   make_png(6, 9, gray.pixels, {.color_type = 0})}) {
    const Image stored = decoded(plain, {.channels = 0});
    for (int orientation = 1; orientation <= 8; ++orientation) {
      const std::string file = with_exif(plain, make_exif(orientation));
      const Image image = decoded(file, {.channels = 0});
      ASSERT_EQ(image.height, orientation < 5 ? 6 : 9);
      ASSERT_EQ(image.width, orientation < 5 ? 9 : 6);
      for (int y = 0; y < image.height; ++y) {
        for (int x = 0; x < image.width; ++x) {
          for (int c = 0; c < image.channels; ++c) {
            ASSERT_EQ(image.pixels[static_cast<size_t>((y * image.width + x) * image.channels + c)],
                      seen(stored, orientation, y, x, c))
                << orientation;
          }
        }
      }
      const Image ignored = decoded(file, {.channels = 0, .orient = false});
      EXPECT_EQ(ignored.width, 9);
    }
  }
}

class Fixed final : public RegionChooser {
 public:
  explicit Fixed(Region region) : region_(region) {}
  Region choose(int height, int width) override {
    height_ = height;
    width_ = width;
    return region_;
  }
  int height() const { return height_; }
  int width() const { return width_; }

 private:
  Region region_;
  int height_ = 0, width_ = 0;
};

// A region of a rotated JPEG equals the same region of the whole rotated image.
TEST(Orientation, AppliesToPartsOfImages) {
  const std::string plain = make_jpeg(make_picture(61, 83, 3, 4));
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const std::string file = with_exif(plain, make_exif(orientation));
    const Image whole = decoded(file, {.channels = 3});
    Fixed region({.top = 17, .left = 9, .height = 20, .width = 31});
    const Image part = decoded(file, {.channels = 3, .region = &region});
    EXPECT_EQ(region.height(), orientation < 5 ? 61 : 83);
    EXPECT_EQ(region.width(), orientation < 5 ? 83 : 61);
    EXPECT_LT(part.height * part.width, whole.height * whole.width);
    ASSERT_LE(part.top, 17);
    ASSERT_LE(part.left, 9);
    ASSERT_GE(part.top + part.height, 17 + 20);
    ASSERT_GE(part.left + part.width, 9 + 31);
    for (int y = 17; y < 37; ++y) {
      for (int x = 9; x < 40; ++x) {
        // Chroma is smoothed across the region's edge in some versions of libjpeg.
        ASSERT_NEAR(
            part.pixels[static_cast<size_t>(((y - part.top) * part.width + x - part.left) * 3)],
            whole.pixels[static_cast<size_t>((y * whole.width + x) * 3)], 3)
            << orientation;
      }
    }
  }
}

// Resizing gives nearly the same result with and without reduced decoding.
TEST(Orientation, AppliesToReducedImages) {
  const TestFolder folder;
  Image smooth{.height = 125, .width = 187, .channels = 3, .pixels = {}};
  for (int y = 0; y < smooth.height; ++y) {
    for (int x = 0; x < smooth.width; ++x) {
      for (int c = 0; c < 3; ++c)
        smooth.pixels.push_back(static_cast<uint8_t>(20 + y + x / 2 + 9 * c));
    }
  }
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const fs::path jpeg = folder.add("a.jpg", with_exif(make_jpeg(smooth), make_exif(orientation)));
    const fs::path png =
        folder.add("a.png", with_exif(make_png(125, 187, smooth.pixels), make_exif(orientation)));
    const FileImages images({jpeg.string(), png.string()});
    const ImageShaper shaper(images, {.height = 24, .width = 24, .channels = 3}, true);
    ImageShaper::Buffers reduced, whole;
    const uint8_t* a = shaper.read(0, nullptr, reduced);
    const uint8_t* b = shaper.read(1, nullptr, whole);
    EXPECT_GT(reduced.image.reduction, 1);
    for (int i = 0; i < 24 * 24 * 3; ++i) ASSERT_NEAR(a[i], b[i], 4) << orientation << " " << i;
  }
}

TEST(Orientation, IsIgnoredWhereFilesAreAskedForAsStored) {
  const TestFolder folder;
  const fs::path path =
      folder.add("a.jpg", with_exif(make_jpeg(make_picture(6, 9, 3, 1)), make_exif(6)));
  Image image;
  FileImages({path.string()}).read(0, {}, image);
  EXPECT_EQ(image.width, 6);
  FileImages({path.string()}, /*orient=*/false).read(0, {}, image);
  EXPECT_EQ(image.width, 9);
}

}  // namespace
}  // namespace gallop::data
