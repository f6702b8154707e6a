#include "gallop/data/data_module.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/data_config.h"
#include "gallop/data/image_module.h"
#include "gallop/data/shared_data.h"
#include "gallop/data/text_module.h"
#include "unit/data/fake_images.h"
#include "unit/data/image_fields.h"
#include "unit/data/numbered_samples.h"

namespace gallop::data {
namespace {

struct NoOptions {};
void visit(config::Visitor&, NoOptions&) {}

std::unique_ptr<ImageParts> flowers() {
  auto parts = std::make_unique<ImageParts>();
  parts->train = std::make_unique<FakeImages>(60, ImageShape{12, 12, 3});
  parts->test = std::make_unique<FakeImages>(20, ImageShape{12, 12, 3});
  return parts;
}
std::unique_ptr<DataModule> open_flowers(const NoOptions&, const DataContext& context) {
  return make_image_module(flowers(), context);
}

std::unique_ptr<TextParts> story() {
  auto parts = std::make_unique<TextParts>();
  parts->train = std::make_unique<TextSet>();
  parts->train->tokens = std::vector<int32_t>(1000, 1);
  parts->train->vocabulary = {"a", "b"};
  parts->validation = std::make_unique<TextSet>(*parts->train);
  return parts;
}

/// Ten numbered samples without a validation split.
std::unique_ptr<DataModule> open_numbers(const NoOptions&, const DataContext&) {
  auto module = std::make_unique<DataModule>();
  auto samples = std::make_unique<NumberedSamples>(10);
  samples->jitter = false;
  module->train = std::move(samples);
  return module;
}

class DataModuleTest : public testing::Test {
 protected:
  DataModuleTest() : folder(fs::path(testing::TempDir()) / ("data-" + std::to_string(getpid()))) {}
  ~DataModuleTest() override { fs::remove_all(folder); }

  OpenOptions options() const {
    return {.cores = 2, .memory_bytes = 1 << 20, .cache_folder = folder};
  }
  std::unique_ptr<DataModule> build(std::unique_ptr<ImageParts> parts) {
    return build(std::move(parts), options());
  }
  std::unique_ptr<DataModule> build(std::unique_ptr<ImageParts> parts, const OpenOptions& how) {
    return make_image_module(std::move(parts),
                             {.config = config, .augmentations = augmentations, .options = how});
  }
  std::unique_ptr<DataModule> build(std::unique_ptr<TextParts> parts) {
    const OpenOptions how = options();
    return make_text_module(std::move(parts), "characters",
                            {.config = config, .augmentations = augmentations, .options = how});
  }
  void augment(const char* name) { config.augment.items.emplace_back(augmentations, name); }

  const fs::path folder;
  DataModuleRegistry modules{"data set"};
  AugmentationRegistry augmentations = built_in_augmentations();
  BatchTransformRegistry batch_transforms = built_in_batch_transforms();
  DataConfig config = [this] {
    modules.add("flowers", "for the test", open_flowers)
        .add("numbers", "for the test", open_numbers);
    return DataConfig(modules, augmentations, batch_transforms);
  }();
};

std::vector<float> first_row(const Samples& samples, int64_t index, int64_t epoch) {
  std::vector<float> row(12 * 12 * 3, -1);
  int64_t label = -1;
  EXPECT_TRUE(fill_row(samples, index, epoch, row.data(), &label));
  EXPECT_EQ(label, index % 3);
  return row;
}

TEST_F(DataModuleTest, OpensImages) {
  augment("random-horizontal-flip");
  const auto data = open_data(config, modules, augmentations, options());
  EXPECT_EQ(data->train->size(), 60);
  EXPECT_EQ(data->test->size(), 20);
  EXPECT_EQ(data->validation, nullptr);
  EXPECT_EQ(data->evaluation(), data->test.get());
  EXPECT_EQ(data->signature.channels, 3);
  EXPECT_EQ(data->signature.kind, "images");
  EXPECT_EQ(data->signature.classes.size(), 3u);
  EXPECT_TRUE(data->notes.empty());
  int changed = 0;
  for (int64_t i = 0; i < 20; ++i) {
    changed += first_row(*data->train, i, 0) != first_row(*data->train, i, 1);
    EXPECT_EQ(first_row(*data->test, i, 0), first_row(*data->test, i, 1));
  }
  EXPECT_GT(changed, 3);
}

TEST_F(DataModuleTest, HasItsImagesUnaugmented) {
  EXPECT_EQ(build(flowers())->unaugmented, nullptr);
  const auto plain = build(flowers());
  augment("random-horizontal-flip");
  const auto data = build(flowers());
  ASSERT_NE(data->unaugmented, nullptr);
  int changed = 0;
  for (int64_t i = 0; i < 60; ++i) {
    EXPECT_EQ(first_row(*data->unaugmented, i, 1), first_row(*plain->train, i, 0));
    changed += first_row(*data->train, i, 1) != first_row(*data->unaugmented, i, 1);
  }
  EXPECT_GT(changed, 10);
  EXPECT_LT(changed, 50);
}

TEST_F(DataModuleTest, NormalizesByTheTrainingDataAllParts) {
  const auto data = build(flowers());
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 60; ++i) {
    for (const float value : first_row(*data->train, i, 0)) {
      sum += value;
      squares += double{value} * value;
    }
  }
  EXPECT_NEAR(sum / (60 * 432), 0, 1e-4);
  EXPECT_NEAR(squares / (60 * 432), 1, 1e-4);
}

TEST_F(DataModuleTest, NormalizesWithGivenMeanAndStd) {
  config.normalize = "none";
  EXPECT_EQ(build(flowers())->signature.deviation, (std::vector<double>{1, 1, 1}));
  config.normalize = "imagenet";
  EXPECT_EQ(build(flowers())->signature.mean[0], 0.485);
  config.channels = 1;
  EXPECT_THROW(build(flowers()), UsageError);
  config.mean = {0.25};
  EXPECT_THROW(build(flowers()), UsageError);
  config.deviation = {0.5};
  EXPECT_EQ(build(flowers())->signature.mean, config.mean);
  config.channels = 2;
  EXPECT_THROW(build(flowers()), UsageError);
}

TEST_F(DataModuleTest, KeepsDecodedImagesWhereTheyFit) {
  const auto reads_in_two_epochs = [&] {
    auto parts = flowers();
    const auto& images = dynamic_cast<const FakeImages&>(*parts->train);
    const auto data = build(std::move(parts));
    const int before = images.reads;
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (int64_t i = 0; i < 60; ++i) first_row(*data->train, i, epoch);
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
  EXPECT_EQ(reads_in_two_epochs(), 120);  // different pixels in every epoch: nothing to cache
}

TEST_F(DataModuleTest, NormalizesAlikeWhateverMemoryHasRoomFor) {
  config.image_size = 7;
  std::vector<std::vector<double>> means;
  for (const char* in_memory : {"yes", "no"}) {
    config.in_memory = in_memory;
    fs::remove_all(folder);
    means.push_back(build(flowers())->signature.mean);
  }
  EXPECT_EQ(means[0], means[1]);
}

// Whether an image is decoded once and not in every epoch.
bool keeps_decoded(const DataModule& data, const FakeImages& images) {
  first_row(*data.train, 0, 0);
  const int before = images.reads;
  first_row(*data.train, 0, 1);
  return images.reads == before;
}

TEST_F(DataModuleTest, UsesNoMoreThanItsShareOfMemory) {
  for (const int64_t less : {1, 0}) {
    OpenOptions small = options();
    small.memory_bytes = 4 * (80 * 432 - less);
    auto parts = flowers();
    const auto& images = dynamic_cast<const FakeImages&>(*parts->train);
    const auto data = build(std::move(parts), small);
    EXPECT_EQ(keeps_decoded(*data, images), less == 0);
  }
}

TEST_F(DataModuleTest, ProcessesShareTheLimitOrTheData) {
  const FakeImages* images = nullptr;
  const auto open = [&](int64_t memory_bytes, std::shared_ptr<SharedData> shared) {
    auto parts = flowers();
    dynamic_cast<FakeImages&>(*parts->train).name = "train";
    dynamic_cast<FakeImages&>(*parts->test).name = "test";
    images = dynamic_cast<const FakeImages*>(parts->train.get());
    OpenOptions of_four = options();
    of_four.memory_bytes = memory_bytes;
    of_four.memory_parts = 4;
    of_four.shared = std::move(shared);
    return build(std::move(parts), of_four);
  };
  const auto keeps = [&](int64_t memory_bytes, std::shared_ptr<SharedData> shared) {
    const auto data = open(memory_bytes, std::move(shared));
    return keeps_decoded(*data, *images);
  };
  constexpr int64_t kOnce = 4 * 80 * 432;
  EXPECT_TRUE(keeps(4 * kOnce, nullptr));
  EXPECT_FALSE(keeps(4 * kOnce - 4, nullptr));
  fs::create_directories(folder / "shared");
  fs::permissions(folder / "shared", fs::perms::owner_all);
  const auto shared = std::make_shared<SharedData>(folder / "shared");
  EXPECT_FALSE(keeps(kOnce - 4, shared));
  const auto first = open(kOnce, shared), second = open(kOnce, shared);
  EXPECT_TRUE(second->notes.empty());
  const int before = images->reads;
  for (int64_t i = 0; i < 60; ++i) {
    const auto row = first_row(*first->train, i, 0);
    EXPECT_EQ(row, first_row(*second->train, i, 0));
  }
  EXPECT_EQ(images->reads, before) << "the first has decoded them";
  // If nothing can be shared, each process has its own data, and the limit is divided.
  const auto broken = std::make_shared<SharedData>(folder / "none");
  EXPECT_FALSE(keeps(kOnce, broken));
  EXPECT_TRUE(keeps(4 * kOnce, broken));
  config.module = config::Component(modules, "flowers");
  OpenOptions unshared = options();
  unshared.shared = broken;
  unshared.memory_bytes = int64_t{1} << 30;
  const auto own = open_data(config, modules, augmentations, unshared);
  ASSERT_EQ(own->notes.size(), 1u);
  EXPECT_EQ(own->notes[0].find("data are not shared with other trainings: "), 0u);
}

TEST_F(DataModuleTest, TellsTheReadersNotesAndOfMoreThreadsThanCores) {
  auto parts = flowers();
  parts->notes = {"2 files are no images"};
  EXPECT_EQ(build(std::move(parts))->notes, std::vector<std::string>{"2 files are no images"});
  config.threads = 3;
  const auto data = open_data(config, modules, augmentations, options());
  ASSERT_EQ(data->notes.size(), 1u);
  EXPECT_NE(data->notes[0].find("3 on 2 cores"), std::string::npos);
}

TEST_F(DataModuleTest, HoldsSamplesOfAnyKindBack) {
  config.module = config::Component(modules, "numbers");
  config.validation = 0.3;
  const auto data = open_data(config, modules, augmentations, options());
  EXPECT_EQ(data->train->size(), 7);
  EXPECT_EQ(data->validation->size(), 3);
  std::set<int64_t> seen;
  for (const Samples* samples : {data->train.get(), data->validation.get()}) {
    for (int64_t i = 0; i < samples->size(); ++i) {
      int64_t numbers[3], index = -1;
      EXPECT_TRUE(fill_row(*samples, i, 0, numbers, &index));
      seen.insert(index);
    }
  }
  EXPECT_EQ(seen.size(), 10u);
  config.validation = 0.01;
  EXPECT_THROW(open_data(config, modules, augmentations, options()), DataError);
}

TEST_F(DataModuleTest, RefusesTasksThatTheDataAreNotFor) {
  config.task = "masked-lm";
  EXPECT_THROW(build(flowers()), UsageError);
  config.context = 16;
  const auto text = build(story());
  EXPECT_EQ(text->signature.task, "masked-lm");
  EXPECT_EQ(text->signature.vocabulary.size(), 3u);
  config.task = "regression";
  EXPECT_THROW(build(story()), UsageError);
}

// The underlying images of a set, to be modified before it is built.
FakeImages& images_of(std::unique_ptr<ImageSet>& set) { return dynamic_cast<FakeImages&>(*set); }

std::unique_ptr<ImageParts> gray_flowers() {
  auto parts = flowers();
  parts->train = std::make_unique<FakeImages>(60, ImageShape{12, 12, 1});
  parts->test = std::make_unique<FakeImages>(20, ImageShape{12, 12, 1});
  return parts;
}

TEST_F(DataModuleTest, IsInColorWhereAnyImageIs) {
  auto parts = flowers();
  images_of(parts->train).other_channels = {0};
  auto data = build(std::move(parts));
  EXPECT_EQ(data->signature.channels, 3);
  EXPECT_EQ(data->notes,
            std::vector<std::string>{"1 of 80 images are gray and converted to color"});

  EXPECT_EQ(build(gray_flowers())->signature.channels, 1);
  for (auto set : {&ImageParts::train, &ImageParts::test}) {
    parts = gray_flowers();
    images_of((*parts).*set).other_channels = {7, 8};
    data = build(std::move(parts));
    EXPECT_EQ(data->signature.channels, 3);
    ASSERT_EQ(data->notes.size(), 1u);
    EXPECT_EQ(data->notes[0],
              "2 of 80 images are in color, the first: item 7; so the 78 gray ones are converted "
              "to color (data.channels=1 converts all to gray)");
  }

  config.channels = 1;
  parts = gray_flowers();
  images_of(parts->train).other_channels = {7, 8};
  data = build(std::move(parts));
  EXPECT_EQ(data->signature.channels, 1);
  EXPECT_EQ(data->notes,
            std::vector<std::string>{
                "2 of 80 images are in color and converted to gray, as data.channels is "
                "1; the first: item 7"});
}

TEST_F(DataModuleTest, WantsOneSizeOfAllImagesUnlessTheyAreResized) {
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

TEST_F(DataModuleTest, StopsAtImagesThatCannotBeReadOrCountsThem) {
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
  const auto data = build(damaged({5, 6}));
  EXPECT_EQ(data->train->size(), 60) << "training counts them, too";
  EXPECT_EQ(data->notes, std::vector<std::string>{"2 skipped (image that cannot be read), the "
                                                  "first: item 5: is damaged"});
  std::set<int64_t> all;
  for (int64_t i = 0; i < 60; ++i) all.insert(i);
  EXPECT_THROW(build(damaged(all)), DataError);
}

TEST_F(DataModuleTest, TellsWhatReadersSkippedAndHowManyImagesAreTurned) {
  auto parts = flowers();
  parts->skipped = {{.reason = "invalid label", .count = 3, .first = "a.tar: 1.cls: no number"}};
  images_of(parts->train).turned = {1, 2};
  images_of(parts->test).turned = {3};
  const auto data = build(std::move(parts));
  ASSERT_EQ(data->notes.size(), 2u);
  EXPECT_EQ(data->notes[0], "3 skipped (invalid label), the first: a.tar: 1.cls: no number");
  EXPECT_EQ(data->notes[1].find("3 of 80 images are turned by their EXIF orientation"), 0u);
}

TEST_F(DataModuleTest, HoldsBackAValidationPartWhereNoneIsGiven) {
  config.validation = 0.25;
  const auto images = build(flowers());
  EXPECT_EQ(images->train->size(), 45);
  EXPECT_EQ(images->validation->size(), 15);
  EXPECT_EQ(images->test->size(), 20);
  EXPECT_EQ(images->evaluation(), images->validation.get());
  config.context = 16;
  EXPECT_EQ(build(story())->train->size(), 61);  // the data already has a validation split
}

TEST_F(DataModuleTest, OpensText) {
  config.context = 16;
  config.eval_stride = 4;
  const auto data = build(story());
  EXPECT_EQ(data->signature.kind, "text");
  EXPECT_EQ(data->train->size(), 61);
  EXPECT_EQ(data->validation->size(), 1 + (999 - 16 + 3) / 4);
  EXPECT_EQ(data->evaluation(), data->validation.get());
  EXPECT_EQ(data->signature.vocabulary, (std::vector<std::string>{"61", "62"}));
  EXPECT_EQ(data->signature.task, "causal-lm");
}

TEST_F(DataModuleTest, NotesAStrideThatMaskedTokensDoNotUse) {
  config.context = 16;
  config.eval_stride = 4;
  EXPECT_TRUE(build(story())->notes.empty());
  config.task = "masked-lm";
  EXPECT_EQ(build(story())->notes,
            std::vector<std::string>{"data.eval_stride is 4, and has no effect on masked-lm, which "
                                     "predicts from both sides; set it to 0"});
  config.eval_stride = 0;
  EXPECT_TRUE(build(story())->notes.empty());
}

TEST_F(DataModuleTest, RefusesWhatDoesNotFitTheData) {
  EXPECT_THROW(build(std::make_unique<ImageParts>()), DataError);
  augment("random-horizontal-flip");
  EXPECT_THROW(build(story()), UsageError);
}

}  // namespace
}  // namespace gallop::data
