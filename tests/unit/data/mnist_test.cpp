#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

const std::string kImages = make_idx({3, 2, 2}, "abcdefghijkl");
const std::string kLabels = make_idx({3}, std::string("\0\x09\x01", 3));

void add_files(const TestFolder& folder, const std::string& joint, bool gzip) {
  for (const std::string part : {"train", "t10k"}) {
    const std::string suffix = gzip ? ".gz" : "";
    folder.add(part + "-images" + joint + "idx3-ubyte" + suffix,
               gzip ? make_gzip(kImages) : kImages);
    folder.add(part + "-labels" + joint + "idx1-ubyte" + suffix,
               gzip ? make_gzip(kLabels) : kLabels);
  }
}

std::unique_ptr<ImageParts> read(const TestFolder& folder) {
  return read_fashion_mnist({}, {.path = folder.name(), .skip_broken = false, .threads = 2});
}

TEST(Mnist, ReadsItsFilesUnderAllNames) {
  for (const std::string joint : {"-", "."}) {
    for (const bool gzip : {false, true}) {
      const TestFolder folder;
      add_files(folder, joint, gzip);
      const auto parts = read(folder);
      ASSERT_EQ(parts->train->size(), 3);
      ASSERT_EQ(parts->test->size(), 3);
      EXPECT_EQ(parts->validation, nullptr);
      EXPECT_EQ(parts->files.size(), 4u);
      EXPECT_EQ(parts->train->stored_shape(), (ImageShape{2, 2, 1}));
      EXPECT_EQ(parts->train->label(1), 9);
      EXPECT_EQ(parts->train->class_names()[9], "Ankle boot");
      EXPECT_EQ(parts->train->stored_pixels(2)[3], 'l');
      EXPECT_EQ(parts->test->describe(2), "test images, item 2");
    }
  }
}

TEST(Mnist, GivesOneOrThreeChannels) {
  const TestFolder folder;
  add_files(folder, "-", false);
  const auto parts = read(folder);
  Image image;
  for (const int channels : {0, 1}) {
    parts->train->read(1, {.channels = channels}, image);
    EXPECT_EQ(image.channels, 1);
    EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.begin() + 4), "efgh");
  }
  parts->train->read(1, {.channels = 3}, image);
  EXPECT_EQ(std::string(image.pixels.begin(), image.pixels.begin() + 12), "eeefffggghhh");
}

TEST(Mnist, SaysWhatIsMissing) {
  const TestFolder folder;
  add_files(folder, "-", true);
  fs::remove(folder.path() / "t10k-labels-idx1-ubyte.gz");
  const std::string message = data_error([&] { read(folder); });
  EXPECT_TRUE(contains(message, folder.name() + " (has no t10k-labels-idx1-ubyte[.gz])"));
  EXPECT_TRUE(contains(message, "apt-get install dataset-fashion-mnist"));
}

TEST(Mnist, RefusesLabelsOutOfRange) {
  const TestFolder folder;
  add_files(folder, "-", false);
  folder.add("t10k-labels-idx1-ubyte", make_idx({3}, std::string("\0\x01\x0a", 3)));
  EXPECT_TRUE(contains(data_error([&] { read(folder); }),
                       "t10k-labels-idx1-ubyte: item 2 has label 10, but there are 10 classes"));
}

TEST(Mnist, SkipsInvalidLabelsAndCountsThem) {
  const TestFolder folder;
  add_files(folder, "-", false);
  const auto whole = read(folder);
  folder.add("train-labels-idx1-ubyte", make_idx({3}, std::string("\x0a\x02\x63", 3)));
  const auto parts = read_mnist({}, {.path = folder.name(), .skip_broken = true});
  ASSERT_EQ(parts->train->size(), 1);
  EXPECT_EQ(parts->train->label(0), 2);
  EXPECT_EQ(*parts->train->stored_pixels(0), *whole->train->stored_pixels(1));
  EXPECT_EQ(parts->train->identity(), whole->train->identity());
  EXPECT_EQ(parts->train->origin(0), 1);
  ASSERT_EQ(parts->skipped.size(), 1u);
  EXPECT_EQ(parts->skipped[0].count, 2);
  EXPECT_TRUE(contains(parts->skipped[0].first,
                       "train-labels-idx1-ubyte: item 0 has label 10, but there are 10 classes"));
  folder.add("train-labels-idx1-ubyte", make_idx({3}, "\x0a\x0b\x0c"));
  EXPECT_TRUE(
      contains(data_error([&] { read_mnist({}, {.path = folder.name(), .skip_broken = true}); }),
               "none of 3 labels is valid"));
}

TEST(Mnist, RefusesCountsAndSizesThatDoNotFit) {
  const TestFolder folder;
  add_files(folder, "-", false);
  folder.add("train-labels-idx1-ubyte", make_idx({2}, "\x01\x02"));
  EXPECT_TRUE(contains(data_error([&] { read(folder); }), "has 3 images, but"));
  add_files(folder, "-", false);
  folder.add("t10k-images-idx3-ubyte", make_idx({3, 4, 1}, "abcdefghijkl"));
  EXPECT_TRUE(contains(data_error([&] { read(folder); }), "differ in size"));
  folder.add("t10k-images-idx3-ubyte", make_idx({0, 2, 2}, ""));
  folder.add("t10k-labels-idx1-ubyte", make_idx({0}, ""));
  EXPECT_TRUE(contains(data_error([&] { read(folder); }), "0 images of 2 x 2"));
}

TEST(Mnist, ReadsTheRealFashionMnist) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist")) {
    GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  }
  const auto parts = read_fashion_mnist(
      {}, {.path = "/usr/share/datasets/fashion-mnist", .skip_broken = false, .threads = 2});
  ASSERT_EQ(parts->train->size(), 60'000);
  ASSERT_EQ(parts->test->size(), 10'000);
  std::vector<int> counts(10);
  for (int64_t i = 0; i < 60'000; ++i) ++counts[static_cast<size_t>(parts->train->label(i))];
  EXPECT_EQ(counts, std::vector<int>(10, 6'000));
  // The known mean of the training images is 0.2860 on a scale where 1 is white.
  double sum = 0;
  for (int64_t i = 0; i < 60'000; ++i) {
    const uint8_t* pixels = parts->train->stored_pixels(i);
    for (int at = 0; at < 28 * 28; ++at) sum += pixels[at];
  }
  EXPECT_NEAR(sum / (60'000.0 * 28 * 28 * 255), 0.2860, 0.0001);
}

}  // namespace
}  // namespace gallop::data
