#include "gallop/data/png_writer.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/image_codec.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

TEST(PngWriter, WritesWhatTheDecoderReads) {
  for (const int channels : {1, 3}) {
    const Image image = make_picture(7, 5, channels, 3);
    Image read;
    PngDecoder().decode(encode_png(image), {.channels = 0}, read);
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.height, 7);
    EXPECT_EQ(read.width, 5);
    EXPECT_EQ(read.pixels, image.pixels);
  }
}

TEST(PngWriter, RefusesOtherChannels) {
  EXPECT_THROW(encode_png(make_picture(4, 4, 2, 3)), InternalError);
}

}  // namespace
}  // namespace gallop::data
