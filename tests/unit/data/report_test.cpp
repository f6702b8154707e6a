#include "gallop/data/report.h"

#include <nlohmann/json.hpp>

#include "gallop/data/readers.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"

namespace gallop::data {
namespace {

TEST(DataReport, CountsMeasuresAndListsWhatIsBroken) {
  const TestFolder folder;
  for (int i = 0; i < 8; ++i) {
    folder.add("train/cat/" + std::to_string(i) + ".jpg", make_jpeg(make_picture(8 + i, 9, 3, i)));
  }
  folder.add("train/dog/1.jpg", make_jpeg(make_picture(20, 7, 1, 1)));
  folder.add("train/dog/2.jpg", "");
  for (int i = 10; i < 23; ++i) folder.add("test/cat/" + std::to_string(i) + ".png", "x");
  folder.add("test/dog/1.jpg", make_jpeg(make_picture(8, 8, 3, 1)));
  const auto parts = read_folder({}, {.path = folder.name()});
  for (const int threads : {1, 3}) {
    const DataReport report = inspect(*parts, threads);
    ASSERT_EQ(report.images.size(), 2u);
    const ImagePartReport& train = report.images[0];
    EXPECT_EQ(train.images, 10);
    EXPECT_EQ(train.class_counts, (std::vector<int64_t>{8, 2}));
    EXPECT_EQ(train.min_height, 8);
    EXPECT_EQ(train.max_height, 20);
    EXPECT_EQ(train.min_width, 7);
    EXPECT_EQ(train.max_width, 9);
    EXPECT_EQ(train.gray, 1);
    EXPECT_EQ(train.color, 8);
    EXPECT_EQ(train.broken, 1);
    EXPECT_EQ(train.broken_examples[0], folder.name() + "/train/dog/2.jpg: the file is empty");
    EXPECT_EQ(report.images[1].broken, 13);
    EXPECT_EQ(report.images[1].broken_examples.size(), 10u);
    EXPECT_TRUE(contains(report.images[1].broken_examples[9], "test/cat/19.png"));
    EXPECT_EQ(report.imbalance, 4);
  }
  const std::string text = to_text(inspect(*parts, 1));
  EXPECT_TRUE(contains(text, "train      10  8 to 20 x 7 to 9 color, 1 gray       1\n"));
  EXPECT_TRUE(contains(text, "cat        8    13\n"));
  EXPECT_TRUE(contains(text, "out of balance: the largest has 4.0 times"));
  EXPECT_TRUE(contains(text, "test: 13 of 14 images cannot be decoded:\n"));
  EXPECT_TRUE(contains(text, "  and 3 more\n"));
  const auto json = nlohmann::json::parse(to_json(inspect(*parts, 1)));
  EXPECT_EQ(json["images"][0]["height"], (std::vector<int>{8, 20}));
  EXPECT_EQ(json["class_names"][1], "dog");
  EXPECT_EQ(json["imbalance"], 4);
}

TEST(DataReport, CountsWhatReadersSkipAndWhatIsTurned) {
  const TestFolder folder;
  folder.add("cat/1.png", with_exif(make_png(6, 5, make_picture(6, 5, 3, 1).pixels), make_exif(8)));
  folder.add("cat/2.png", make_png(5, 6, make_picture(5, 6, 3, 1).pixels));
  folder.add("cat/3.heic", "x");
  folder.add("dog/4.bmp", "x");
  folder.add("dog/5.png", make_png(5, 6, make_picture(5, 6, 3, 1).pixels));
  const DataReport report =
      inspect(*read_folder({}, {.path = folder.name(), .skip_broken = true}), 1);
  EXPECT_EQ(report.images[0].turned, 1);
  EXPECT_EQ(report.images[0].max_height, 5) << "as they are seen";
  EXPECT_TRUE(contains(to_text(report), "2 skipped (image of another format), the first: " +
                                            folder.name() + "/cat/3.heic: is of a format"));
  EXPECT_TRUE(
      contains(to_text(report), "train: 1 of 3 images are turned by their EXIF orientation"));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["images"][0]["turned"], 1);
  EXPECT_EQ(json["skipped"][0]["reason"], "image of another format");
  EXPECT_EQ(json["skipped"][0]["count"], 2);
}

TEST(DataReport, SaysNothingOfWhatIsInOrder) {
  const TestFolder folder;
  for (const std::string part : {"train", "t10k"}) {
    folder.add(part + "-images-idx3-ubyte", make_idx({2, 2, 2}, "abcdefgh"));
    folder.add(part + "-labels-idx1-ubyte", make_idx({2}, std::string("\0\1", 2)));
  }
  const DataReport report = inspect(*read_mnist({}, {.path = folder.name()}), 1);
  EXPECT_EQ(report.imbalance, 1);
  EXPECT_EQ(report.empty_classes.size(), 8u);
  EXPECT_TRUE(contains(to_text(report), "train       2      2 x 2 gray       0\n"));
  EXPECT_TRUE(
      contains(to_text(report), "classes without a training image: 2, 3, 4, 5, 6, 7, 8 and 9"));
  EXPECT_FALSE(contains(to_text(report), "balance"));
  EXPECT_FALSE(contains(to_text(report), "cannot be decoded"));
}

TEST(DataReport, ShowsTexts) {
  const TestFolder folder;
  folder.add("train.txt", "a\nbä");
  folder.add("test.txt", "ab");
  const DataReport report = inspect(*read_text({}, {.path = folder.name()}));
  EXPECT_EQ(to_text(report),
            "split  tokens\ntrain       4\ntest        2\n\nvocabulary  4 tokens: \\nabä\n");
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["texts"][1]["tokens"], 2);
  EXPECT_EQ(json["vocabulary"].size(), 4u);
  const auto bytes = inspect(*read_text({.unit = "bytes"}, {.path = folder.name()}));
  EXPECT_EQ(nlohmann::json::parse(to_json(bytes))["vocabulary"].size(), 256u);
}

}  // namespace
}  // namespace gallop::data
