#include "gallop/data/training_data.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/text_samples.h"
#include "unit/data/fake_images.h"

namespace gallop::data {
namespace {

struct NoOptions {};
void visit(config::Visitor&, NoOptions&) {}

std::unique_ptr<ImageParts> flowers() {
  auto parts = std::make_unique<ImageParts>();
  parts->train = std::make_unique<FakeImages>(60, ImageShape{12, 12, 3});
  parts->test = std::make_unique<FakeImages>(20, ImageShape{12, 12, 3});
  parts->files = {"flowers.bin"};
  return parts;
}
std::unique_ptr<ImageParts> read_flowers(const NoOptions&, const ReadContext&) { return flowers(); }

std::unique_ptr<ImageParts> story() {
  auto parts = std::make_unique<ImageParts>();
  parts->train_text = std::make_unique<TextSet>();
  parts->train_text->tokens = std::vector<int32_t>(1000, 1);
  parts->train_text->vocabulary = {"a", "b"};
  parts->validation_text = std::make_unique<TextSet>(*parts->train_text);
  return parts;
}

class TrainingDataTest : public testing::Test {
 protected:
  TrainingDataTest()
      : folder(fs::path(testing::TempDir()) / ("data-" + std::to_string(getpid()))) {}
  ~TrainingDataTest() override { fs::remove_all(folder); }

  OpenOptions options() const {
    return {.cores = 2, .memory_bytes = 1 << 20, .cache_folder = folder};
  }
  TrainingData build(std::unique_ptr<ImageParts> parts) {
    return build_data(config, std::move(parts), augmentations, options());
  }
  void augment(const char* name) { config.augment.items.emplace_back(augmentations, name); }

  const fs::path folder;
  ReaderRegistry readers{"data set"};
  AugmentationRegistry augmentations = built_in_augmentations();
  DataConfig config = [this] {
    readers.add("flowers", "for the test", read_flowers);
    return DataConfig(readers, augmentations);
  }();
};

std::vector<float> first_row(const Samples& samples, int64_t index, int64_t epoch) {
  std::vector<float> row(12 * 12 * 3, -1);
  int64_t label = -1;
  const auto scratch = samples.make_scratch();
  EXPECT_TRUE(samples.fill(index, epoch, row.data(), &label, *scratch));
  EXPECT_EQ(label, index % 3);
  return row;
}

TEST_F(TrainingDataTest, OpensImages) {
  augment("random-horizontal-flip");
  const TrainingData data = open_data(config, readers, augmentations, options());
  EXPECT_EQ(data.train->size(), 60);
  EXPECT_EQ(data.test->size(), 20);
  EXPECT_EQ(data.validation, nullptr);
  EXPECT_EQ(data.evaluation(), data.test.get());
  EXPECT_EQ(data.image_shape, (ImageShape{12, 12, 3}));
  EXPECT_FALSE(data.is_text());
  EXPECT_EQ(data.names.size(), 3u);
  EXPECT_TRUE(data.notes.empty());
  int changed = 0;
  for (int64_t i = 0; i < 20; ++i) {
    changed += first_row(*data.train, i, 0) != first_row(*data.train, i, 1);
    EXPECT_EQ(first_row(*data.test, i, 0), first_row(*data.test, i, 1));
  }
  EXPECT_GT(changed, 3);
}

TEST_F(TrainingDataTest, HasItsImagesUnaugmented) {
  EXPECT_EQ(build(flowers()).unaugmented, nullptr);
  const TrainingData plain = build(flowers());
  augment("random-horizontal-flip");
  const TrainingData data = build(flowers());
  ASSERT_NE(data.unaugmented, nullptr);
  int changed = 0;
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(first_row(*data.unaugmented, i, 1), first_row(*plain.train, i, 0));
    changed += first_row(*data.train, i, 1) != first_row(*data.unaugmented, i, 1);
  }
  EXPECT_GT(changed, 10);
  EXPECT_LT(changed, 50);
}

TEST_F(TrainingDataTest, NormalizesByTheTrainingDataAllParts) {
  const TrainingData data = build(flowers());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 60; ++i) {
    for (const float value : first_row(*data.train, i, 0)) {
      sum += value;
      squares += double{value} * value;
    }
  }
  EXPECT_NEAR(sum / (60 * 432), 0, 1e-4);
  EXPECT_NEAR(squares / (60 * 432), 1, 1e-4);
}

TEST_F(TrainingDataTest, NormalizesAsTold) {
  config.normalize = "none";
  EXPECT_EQ(build(flowers()).deviation, (std::vector<double>{1, 1, 1}));
  config.normalize = "imagenet";
  EXPECT_EQ(build(flowers()).mean[0], 0.485);
  config.channels = 1;
  EXPECT_THROW(build(flowers()), UsageError);
  config.mean = {0.25};
  EXPECT_THROW(build(flowers()), UsageError);
  config.deviation = {0.5};
  EXPECT_EQ(build(flowers()).mean, config.mean);
  config.channels = 2;
  EXPECT_THROW(build(flowers()), UsageError);
}

TEST_F(TrainingDataTest, KeepsDecodedImagesWhereTheyFit) {
  const auto reads_in_two_epochs = [&] {
    auto parts = flowers();
    const auto& images = dynamic_cast<const FakeImages&>(*parts->train);
    const TrainingData data = build(std::move(parts));
    const int before = images.reads;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (int64_t i = 0; i < 60; ++i) first_row(*data.train, i, epoch);
    }
    return images.reads - before;
  };
  config.normalize = "none";
  EXPECT_EQ(reads_in_two_epochs(), 60);
  config.in_memory = "no";
  EXPECT_EQ(reads_in_two_epochs(), 120);
  config.in_memory = "auto";
  config.image_size = 12;
  augment("random-resized-crop");
  EXPECT_EQ(reads_in_two_epochs(), 120);  // other pixels in every epoch: nothing to keep
}

TEST_F(TrainingDataTest, NormalizesAlikeWhateverMemoryHasRoomFor) {
  config.image_size = 7;
  std::vector<std::vector<double>> means;
  for (const char* in_memory : {"yes", "no"}) {
    config.in_memory = in_memory;
    fs::remove_all(folder);
    means.push_back(build(flowers()).mean);
  }
  EXPECT_EQ(means[0], means[1]);
}

TEST_F(TrainingDataTest, UsesNoMoreThanItsShareOfMemory) {
  OpenOptions small = options();
  small.memory_bytes = 4 * (80 * 432 - 1);
  EXPECT_TRUE(build_data(config, flowers(), augmentations, small).derived.empty());
  small.memory_bytes = 4 * 80 * 432;
  EXPECT_EQ(build_data(config, flowers(), augmentations, small).derived.size(), 2u);
}

TEST_F(TrainingDataTest, ProcessesShareTheLimitOrTheData) {
  const auto open = [&](int64_t memory_bytes, std::shared_ptr<SharedData> shared) {
    auto parts = flowers();
    dynamic_cast<FakeImages&>(*parts->train).name = "train";
    dynamic_cast<FakeImages&>(*parts->test).name = "test";
    OpenOptions of_four = options();
    of_four.memory_bytes = memory_bytes;
    of_four.memory_parts = 4;
    of_four.shared = std::move(shared);
    return build_data(config, std::move(parts), augmentations, of_four);
  };
  constexpr int64_t kOnce = 4 * 80 * 432;
  EXPECT_EQ(open(4 * kOnce, nullptr).derived.size(), 2u);
  EXPECT_TRUE(open(4 * kOnce - 4, nullptr).derived.empty());
  fs::create_directories(folder / "shared");
  fs::permissions(folder / "shared", fs::perms::owner_all);
  const auto shared = std::make_shared<SharedData>(folder / "shared");
  EXPECT_TRUE(open(kOnce - 4, shared).derived.empty());
  const TrainingData first = open(kOnce, shared), second = open(kOnce, shared);
  EXPECT_TRUE(second.notes.empty());
  EXPECT_EQ(second.derived.size(), 2u);
  const auto* images = dynamic_cast<const FakeImages*>(second.parts->train.get());
  const int before = images->reads;
  for (int64_t i = 0; i < 60; ++i) {
    const auto row = first_row(*first.train, i, 0);
    EXPECT_EQ(row, first_row(*second.train, i, 0));
  }
  EXPECT_EQ(images->reads, before) << "the first has decoded them";
  // Where nothing can be shared the data are each process's own, and the limit is shared.
  const auto broken = std::make_shared<SharedData>(folder / "none");
  EXPECT_TRUE(open(kOnce, broken).derived.empty());
  const TrainingData own = open(4 * kOnce, broken);
  EXPECT_EQ(own.derived.size(), 2u);
  ASSERT_EQ(own.notes.size(), 1u);
  EXPECT_EQ(own.notes[0].find("data are not shared with other trainings: "), 0u);
}

TEST_F(TrainingDataTest, TellsTheReadersNotesAndOfMoreThreadsThanCores) {
  config.threads = 3;
  auto parts = flowers();
  parts->notes = {"2 files are no images"};
  const TrainingData data = build(std::move(parts));
  ASSERT_EQ(data.notes.size(), 2u);
  EXPECT_EQ(data.notes[0], "2 files are no images");
  EXPECT_NE(data.notes[1].find("3 on 2 cores"), std::string::npos);
}

// What images were made of, to be changed before they are built.
FakeImages& images_of(std::unique_ptr<ImageSet>& set) { return dynamic_cast<FakeImages&>(*set); }

std::unique_ptr<ImageParts> gray_flowers() {
  auto parts = flowers();
  parts->train = std::make_unique<FakeImages>(60, ImageShape{12, 12, 1});
  parts->test = std::make_unique<FakeImages>(20, ImageShape{12, 12, 1});
  return parts;
}

TEST_F(TrainingDataTest, IsInColorWhereAnyImageIs) {
  auto parts = flowers();
  images_of(parts->train).other_channels = {0};
  TrainingData data = build(std::move(parts));
  EXPECT_EQ(data.image_shape.channels, 3);
  EXPECT_EQ(data.notes, std::vector<std::string>{"1 of 80 images are gray and converted to color"});

  EXPECT_EQ(build(gray_flowers()).image_shape.channels, 1);
  for (auto set : {&ImageParts::train, &ImageParts::test}) {
    parts = gray_flowers();
    images_of((*parts).*set).other_channels = {7, 8};
    data = build(std::move(parts));
    EXPECT_EQ(data.image_shape.channels, 3);
    ASSERT_EQ(data.notes.size(), 1u);
    EXPECT_EQ(data.notes[0],
              "2 of 80 images are in color, the first: item 7; so the 78 gray ones are converted "
              "to color (data.channels=1 converts all to gray)");
  }

  config.channels = 1;
  parts = gray_flowers();
  images_of(parts->train).other_channels = {7, 8};
  data = build(std::move(parts));
  EXPECT_EQ(data.image_shape.channels, 1);
  EXPECT_EQ(data.notes,
            std::vector<std::string>{
                "2 of 80 images are in color and converted to gray, as data.channels is "
                "1; the first: item 7"});
}

TEST_F(TrainingDataTest, WantsOneSizeOfAllImagesUnlessTheyAreResized) {
  const auto refusal = [&](std::unique_ptr<ImageSet> ImageParts::*set, std::set<int64_t> others) {
    auto parts = flowers();
    images_of((*parts).*set).other_height = std::move(others);
    try {
      build(std::move(parts));
    } catch (const DataError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(&ImageParts::train, {40, 59}),
            "item 40: is 13 x 12 pixels (height x width) where the first image has 12 x 12, and 2 "
            "of 80 images differ from it; set data.image_size to bring all images to one size");
  EXPECT_EQ(refusal(&ImageParts::test, {3}).find("item 3: is 13 x 12 pixels"), 0u);
  auto other_test = flowers();
  other_test->test = std::make_unique<FakeImages>(20, ImageShape{9, 12, 3});
  EXPECT_THROW(build(std::move(other_test)), DataError);
  config.image_size = 12;
  EXPECT_EQ(refusal(&ImageParts::train, {40, 59}), "");
}

TEST_F(TrainingDataTest, StopsAtImagesThatCannotBeReadOrCountsThem) {
  const auto damaged = [](std::set<int64_t> indices) {
    auto parts = flowers();
    images_of(parts->train).damaged = std::move(indices);
    return parts;
  };
  try {
    build(damaged({5, 6}));
    ADD_FAILURE() << "no error";
  } catch (const DataError& error) {
    EXPECT_EQ(std::string(error.what()).find("item 5: is damaged (1 more like it"), 0u);
  }
  config.on_error = "skip";
  const TrainingData data = build(damaged({5, 6}));
  EXPECT_EQ(data.train->size(), 60) << "training counts them, too";
  EXPECT_EQ(data.notes, std::vector<std::string>{"2 skipped (image that cannot be read), the "
                                                 "first: item 5: is damaged"});
  std::set<int64_t> all;
  for (int64_t i = 0; i < 60; ++i) all.insert(i);
  EXPECT_THROW(build(damaged(all)), DataError);
}

TEST_F(TrainingDataTest, TellsWhatReadersSkippedAndHowManyImagesAreTurned) {
  auto parts = flowers();
  parts->skipped = {{.reason = "invalid label", .count = 3, .first = "a.tar: 1.cls: no number"}};
  images_of(parts->train).turned = {1, 2};
  images_of(parts->test).turned = {3};
  const TrainingData data = build(std::move(parts));
  ASSERT_EQ(data.notes.size(), 2u);
  EXPECT_EQ(data.notes[0], "3 skipped (invalid label), the first: a.tar: 1.cls: no number");
  EXPECT_EQ(data.notes[1].find("3 of 80 images are turned by their EXIF orientation"), 0u);
}

TEST_F(TrainingDataTest, HoldsBackAValidationPartWhereNoneIsGiven) {
  config.validation = 0.25;
  const TrainingData images = build(flowers());
  EXPECT_EQ(images.train->size(), 45);
  EXPECT_EQ(images.validation->size(), 15);
  EXPECT_EQ(images.test->size(), 20);
  EXPECT_EQ(images.evaluation(), images.validation.get());
  config.context = 16;
  EXPECT_EQ(build(story()).train->size(), 61);  // it has one already
}

TEST_F(TrainingDataTest, OpensText) {
  config.context = 16;
  config.eval_stride = 4;
  const TrainingData data = build(story());
  EXPECT_TRUE(data.is_text());
  EXPECT_EQ(data.train->size(), 61);
  EXPECT_EQ(data.validation->size(), 1 + (999 - 16 + 3) / 4);
  EXPECT_EQ(data.evaluation(), data.validation.get());
  EXPECT_EQ(data.names, (std::vector<std::string>{"a", "b"}));
}

TEST_F(TrainingDataTest, RefusesWhatDoesNotFitTheData) {
  EXPECT_THROW(build(std::make_unique<ImageParts>()), DataError);
  augment("random-horizontal-flip");
  EXPECT_THROW(build(story()), UsageError);
}

}  // namespace
}  // namespace gallop::data
