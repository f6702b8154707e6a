#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

TEST(FakeImages, AreTheSameAtEachRead) {
  const auto parts = read_fake_images({.samples = 20, .shape = {3, 5, 7}, .classes = 4}, {});
  EXPECT_EQ(parts->train->size(), 20);
  EXPECT_EQ(parts->test->size(), 4);
  EXPECT_EQ(parts->train->class_names().size(), 4U);
  Image first, again, other, test;
  parts->train->read(3, {}, first);
  parts->train->read(3, {}, again);
  parts->train->read(4, {}, other);
  parts->test->read(3, {}, test);
  EXPECT_EQ(first.pixels.size(), 3U * 5 * 7);
  EXPECT_EQ(first.pixels, again.pixels);
  EXPECT_NE(first.pixels, other.pixels);
  EXPECT_NE(first.pixels, test.pixels);
  Image gray;
  parts->train->read(3, {.channels = 1}, gray);
  EXPECT_EQ(gray.pixels.size(), 5U * 7);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_GE(parts->train->label(i), 0);
    EXPECT_LT(parts->train->label(i), 4);
    EXPECT_EQ(parts->train->label(i), parts->train->label(i));
  }
}

TEST(FakeImages, RejectOtherShapesAndPaths) {
  EXPECT_THROW(read_fake_images({.shape = {2, 5, 7}}, {}), UsageError);
  EXPECT_THROW(read_fake_images({.shape = {5, 7}}, {}), UsageError);
  EXPECT_THROW(read_fake_images({}, {.path = "images"}), UsageError);
}

}  // namespace
}  // namespace gallop::data
