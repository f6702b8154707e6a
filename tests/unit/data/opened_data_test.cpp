#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/data/data_config.h"
#include "gallop/data/loader.h"
#include "gallop/data/masked_text.h"
#include "gallop/data/png_writer.h"
#include "gallop/data/report.h"
#include "gallop/data/segmentation.h"
#include "gallop/data/table.h"
#include "gallop/data/text_samples.h"
#include "unit/base/error_of.h"
#include "unit/config/component_of.h"
#include "unit/data/data_folder.h"
#include "unit/data/expect_error.h"
#include "unit/data/format_files.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

/// A fixture that opens data of a folder as a recipe does.
class OpenedData : public DataFolder {
 protected:
  std::unique_ptr<DataModule> open_csv(const CsvConfig& table = {}) {
    DataConfig own = config;
    own.path = path.empty() ? folder.name() : path;
    return data::open_csv(table, context_of(own));
  }
  std::unique_ptr<DataModule> open_masks(const SegmentationConfig& masks = {}) {
    DataConfig own = config;
    own.path = folder.name();
    return open_segmentation(masks, context_of(own));
  }

  std::string path;
};

std::string usage_error(const std::function<void()>& action) {
  EXPECT_THROW(action(), UsageError);
  return error_of(action);
}

struct Row {
  std::vector<float> features;
  std::vector<float> target;
  int64_t label = -1;
};

Row row_of(const Samples& samples, int64_t index) {
  const bool is_class = samples.fields().target().shape.dtype == c10::ScalarType::Long;
  Row row;
  row.features.resize(static_cast<size_t>(samples.fields().input().shape.sizes[0]));
  if (!is_class) row.target.resize(static_cast<size_t>(samples.fields().target().shape.sizes[0]));
  void* const target = is_class ? static_cast<void*>(&row.label) : row.target.data();
  EXPECT_TRUE(fill_row(samples, index, 0, row.features.data(), target));
  return row;
}

TEST_F(OpenedData, TablesAreNormalizedByTheTrainingPart) {
  folder.add("train.csv", "\xEF\xBB\xBFx,c,price\n1,5,10\n3,5,20\n");
  folder.add("val.csv", "price,c,x\n30,5,5\n");
  const auto data = open_csv();
  EXPECT_EQ(data->signature.kind, "numbers");
  EXPECT_EQ(data->signature.task, "regression");
  EXPECT_EQ(data->signature.columns, (std::vector<std::string>{"x", "c"}));
  EXPECT_EQ(data->signature.targets, (std::vector<std::string>{"price"}));
  EXPECT_EQ(data->signature.mean, (std::vector<double>{2, 5}));
  EXPECT_EQ(data->signature.deviation, (std::vector<double>{1, 1}));
  EXPECT_EQ(row_of(*data->train, 0).features, (std::vector<float>{-1, 0}));
  EXPECT_EQ(row_of(*data->validation, 0).features, (std::vector<float>{3, 0}));
  EXPECT_EQ(row_of(*data->validation, 0).target, (std::vector<float>{30}));
  EXPECT_EQ(data->test, nullptr);
  EXPECT_TRUE(data->validation->describe(0).ends_with("val.csv:2"));
}

TEST_F(OpenedData, TasksOfTablesFollowFromTheirTargets) {
  folder.add("words.csv", "x,kind\n1,b\n2,a\n3,b\n");
  path = folder.name() + "/words.csv";
  auto data = open_csv();
  EXPECT_EQ(data->signature.task, "classification");
  EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(row_of(*data->train, 0).label, 1);
  EXPECT_TRUE(data->train->every_target_counts());

  folder.add("labels.csv", "x,wet,cold\n1,0,1\n2,1,1\n");
  path = folder.name() + "/labels.csv";
  data = open_csv({.targets = {"wet", "cold"}});
  EXPECT_EQ(data->signature.task, "multi-label");
  EXPECT_EQ(data->signature.classes, (std::vector<std::string>{"wet", "cold"}));
  EXPECT_EQ(row_of(*data->train, 1).target, (std::vector<float>{1, 1}));

  folder.add("digits.csv", "x,digit\n1,10\n2,9\n");
  path = folder.name() + "/digits.csv";
  EXPECT_EQ(open_csv()->signature.task, "regression");
  config.task = "classification";
  EXPECT_EQ(open_csv()->signature.classes, (std::vector<std::string>{"9", "10"}));
  config.task = "segmentation";
  EXPECT_THROW(open_csv(), UsageError);
}

TEST_F(OpenedData, TablesNameWhatTheyCannotRead) {
  const auto error_of = [&](const std::string& text, const CsvConfig& table = {}) {
    folder.add("a.csv", text);
    path = folder.name() + "/a.csv";
    return data_error([&] { open_csv(table); });
  };
  EXPECT_TRUE(contains(error_of("x,y\n1,2\nfour,5\n"), "a.csv:3:1: column 'x' is 'four'"));
  EXPECT_TRUE(contains(error_of("x,y\n1,2\n1,2,3\n"), "a.csv:3:5: 3 fields"));
  EXPECT_TRUE(contains(error_of("x,x\n1,2\n"), "two columns are named 'x'"));
  EXPECT_TRUE(contains(error_of("x,y\n"), "has no rows"));
  EXPECT_TRUE(contains(error_of(""), "empty"));
  EXPECT_TRUE(contains(error_of("price,y\n1,2\n", {.targets = {"pric"}}), "did you mean 'price'"));
  EXPECT_TRUE(contains(error_of("x,y\n1,2\nnan,5\n"), "a.csv:3:1: column 'x' has no value"));
  config.on_error = "skip";
  folder.add("a.csv", "x,y\n1,2\nfour,5\n7,8\n");
  const auto data = open_csv();
  EXPECT_EQ(data->train->size(), 2);
  ASSERT_EQ(data->notes.size(), 1u);
  EXPECT_TRUE(contains(data->notes[0], "1 skipped (value that is not a number)"));
}

TEST_F(OpenedData, RowsOfOtherFilesNeedNoTargets) {
  folder.add("train.csv", "x,c,price\n1,5,10\n3,5,20\n");
  const auto data = open_csv();
  folder.add("new.csv", "c;x\n5;4\n");
  const auto rows = table_rows(folder.name() + "/new.csv", data->signature);
  EXPECT_EQ(row_of(*rows, 0).features, (std::vector<float>{2, 0}));
  folder.add("less.csv", "x\n5\n");
  EXPECT_TRUE(
      contains(data_error([&] { table_rows(folder.name() + "/less.csv", data->signature); }),
               "has no column 'c'"));
}

TEST_F(OpenedData, MasksMoveWithTheirImages) {
  // Pixels encode their position, and so does the mask.
  Image image{.height = 4, .width = 4, .channels = 1, .pixels = std::vector<uint8_t>(16)};
  for (size_t i = 0; i < 16; ++i) image.pixels[i] = static_cast<uint8_t>(i);
  for (const char* name : {"a", "b"}) {
    folder.add(std::string("train/images/") + name + ".png", encode_png(image));
    folder.add(std::string("train/masks/") + name + ".png", encode_png(image));
  }
  config.normalize = "none";
  config.augment.items.emplace_back(augmentations, "random-horizontal-flip");
  config.augment.items.push_back(config::component_of(augmentations, "random-crop padding=2"));
  const auto data = open_masks();
  EXPECT_EQ(data->signature.task, "segmentation");
  EXPECT_EQ(data->signature.outputs(), 16);
  int moved = 0;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<float> pixels(16);
    std::vector<int64_t> mask(16);
    ASSERT_TRUE(fill_row(*data->train, 0, epoch, pixels.data(), mask.data()));
    for (size_t i = 0; i < 16; ++i) {
      if (mask[i] == kIgnoredTarget) {
        EXPECT_EQ(pixels[i], 0);
      } else {
        EXPECT_FLOAT_EQ(pixels[i] * 255, static_cast<float>(mask[i]));
      }
    }
    moved += mask[0] != 0 ? 1 : 0;
  }
  EXPECT_GT(moved, 5);
}

TEST_F(OpenedData, MasksAreWarpedWithTheirImages) {
  // Values above 0, so that black is from outside the image.
  Image image{.height = 6, .width = 6, .channels = 1, .pixels = std::vector<uint8_t>(36)};
  for (size_t i = 0; i < 36; ++i) image.pixels[i] = static_cast<uint8_t>(i + 1);
  folder.add("train/images/a.png", encode_png(image));
  folder.add("train/masks/a.png", encode_png(image));
  config.normalize = "none";
  for (const char* one : {"random-horizontal-flip", "random-rotation degrees=180",
                          "random-affine degrees=0 translate=[0.4,0.4] scale=[0.5,2]"}) {
    config.augment.items.push_back(config::component_of(augmentations, one));
  }
  const auto data = open_masks();
  int outside = 0, changed = 0;
  for (int64_t epoch = 0; epoch < 30; ++epoch) {
    std::vector<float> pixels(36);
    std::vector<int64_t> mask(36);
    ASSERT_TRUE(fill_row(*data->train, 0, epoch, pixels.data(), mask.data()));
    for (size_t i = 0; i < 36; ++i) {
      outside += mask[i] == kIgnoredTarget;
      changed += mask[i] != static_cast<int64_t>(i + 1);
      EXPECT_NEAR(pixels[i] * 255, mask[i] == kIgnoredTarget ? 0 : static_cast<float>(mask[i]),
                  1e-3);
    }
  }
  EXPECT_GT(outside, 50);
  EXPECT_GT(changed, 500);
}

TEST_F(OpenedData, MasksHaveNoPolicies) {
  const Image image{.height = 2, .width = 2, .channels = 1, .pixels = {0, 1, 1, 1}};
  folder.add("train/images/a.png", encode_png(image));
  folder.add("train/masks/a.png", encode_png(image));
  config.augment.items.emplace_back(augmentations, "rand-augment");
  try {
    open_masks();
    FAIL() << "masks with rand-augment";
  } catch (const UsageError& error) {
    EXPECT_TRUE(contains(error.what(), "'rand-augment' cannot be applied to masks"));
  }
}

TEST_F(OpenedData, MasksThatDoNotFitAreNamed) {
  Image image{.height = 2, .width = 2, .channels = 1, .pixels = {0, 1, 255, 1}};
  folder.add("images/a.png", encode_png(image));
  folder.add("masks/a.png", encode_png(image));
  const auto data = open_masks({.classes = {"sky", "sea"}});
  std::vector<float> pixels(4);
  std::vector<int64_t> mask(4);
  ASSERT_TRUE(fill_row(*data->train, 0, 0, pixels.data(), mask.data()));
  EXPECT_EQ(mask, (std::vector<int64_t>{0, 1, kIgnoredTarget, 1}));
  const auto few = open_masks({.classes = {"sky"}});
  EXPECT_TRUE(contains(data_error([&] { fill_row(*few->train, 0, 0, pixels.data(), mask.data()); }),
                       "pixel (0, 1) is 1"));
  folder.add("images/b.png", encode_png(image));
  EXPECT_TRUE(contains(data_error([&] { open_masks(); }), "there is no mask b.png"));
  config.on_error = "skip";
  EXPECT_EQ(open_masks()->train->size(), 1);
}

TEST_F(OpenedData, MasksHaveMoreThanOneClass) {
  const Image image{.height = 2, .width = 2, .channels = 1, .pixels = {0, 255, 0, 0}};
  folder.add("images/a.png", encode_png(image));
  folder.add("masks/a.png", encode_png(image));
  const char* const advice =
      "training masks have no class but 0, as the value 255 is ignored (data.ignore_index); if it "
      "is a class as well, store it as 1";
  EXPECT_EQ(usage_error([&] { open_masks(); }), std::string("the ") + advice);
  const auto given = open_masks({.classes = {"sky", "sea"}});
  ASSERT_EQ(given->notes.size(), 1u);
  EXPECT_EQ(given->notes[0], std::string("the ") + advice);
  EXPECT_TRUE(open_masks({.classes = {"sky", "sea"}, .ignore_index = 254})->notes.empty());
  const Image other{.height = 2, .width = 2, .channels = 1, .pixels = {0, 255, 1, 0}};
  folder.add("masks/a.png", encode_png(other));
  EXPECT_TRUE(open_masks({.classes = {"sky", "sea"}})->notes.empty());
  EXPECT_EQ(open_masks()->signature.classes.size(), 2);
}

TEST_F(OpenedData, MasksRefuseOptionsThatDoNotFit) {
  const Image image{.height = 2, .width = 2, .channels = 1, .pixels = {0, 1, 1, 1}};
  folder.add("images/a.png", encode_png(image));
  folder.add("masks/a.png", encode_png(image));
  config.in_memory = "no";
  EXPECT_NO_THROW(open_masks());
  config.in_memory = "yes";
  EXPECT_TRUE(contains(usage_error([&] { open_masks(); }),
                       "data.in_memory=yes is for images with a class or numbers as targets"));
  config.in_memory = "auto";
  config.channels = 2;
  EXPECT_TRUE(contains(usage_error([&] { open_masks(); }), "data.channels must be 0, 1 or 3"));
}

TEST_F(OpenedData, MasksMayHavePalettesAndFewBits) {
  const Image image{.height = 1, .width = 4, .channels = 1, .pixels = {10, 20, 30, 40}};
  folder.add("images/a.png", encode_png(image));
  std::vector<float> pixels(4);
  std::vector<int64_t> mask(4);
  folder.add(
      "masks/a.png",
      make_png(1, 4, {0b10'00'01'10},
               {.color_type = 3, .bit_depth = 2, .palette = {200, 0, 0, 0, 150, 0, 0, 0, 250}}));
  ASSERT_TRUE(fill_row(*open_masks()->train, 0, 0, pixels.data(), mask.data()));
  EXPECT_EQ(mask, (std::vector<int64_t>{2, 0, 1, 2}));
  EXPECT_EQ(open_masks()->signature.classes.size(), 3);
  folder.add("masks/a.png", make_png(1, 4, {0b1011'0000}, {.color_type = 0, .bit_depth = 1}));
  ASSERT_TRUE(fill_row(*open_masks()->train, 0, 0, pixels.data(), mask.data()));
  EXPECT_EQ(mask, (std::vector<int64_t>{1, 0, 1, 1})) << "not 255, which is ignored";
  folder.add("masks/a.png",
             make_png(1, 4, std::vector<uint8_t>(8), {.color_type = 0, .bit_depth = 16}));
  EXPECT_TRUE(contains(data_error([&] { open_masks(); }), "16 bits per pixel"));
  folder.add("masks/a.png", make_png(1, 4, std::vector<uint8_t>(12)));
  EXPECT_TRUE(contains(data_error([&] { open_masks(); }), "but this one is in color"));
}

TEST_F(OpenedData, MasksAreReadForTheirClassesOnlyWhereThoseAreNeeded) {
  Image image{.height = 2, .width = 2, .channels = 1, .pixels = {0, 2, 255, 1}};
  folder.add("train/images/a.png", encode_png(image));
  folder.add("train/masks/a.png", encode_png(image));
  folder.add("test/images/b.png", encode_png(image));
  folder.add("test/masks/b.png", encode_png(image));
  config.path = folder.name();
  config.module = config::component_of(modules, "segmentation");
  const DataReport report = read_data(config, modules, augmentations, options)->inspect(2);
  EXPECT_EQ(report.class_names, (std::vector<std::string>{"class 0", "class 1", "class 2"}));
  ASSERT_EQ(report.others.size(), 2);
  EXPECT_EQ(report.others[1].name, "test");
  EXPECT_EQ(report.others[1].samples, 1);
  EXPECT_TRUE(contains(to_text(report), "classes  class 0, class 1, class 2"));

  folder.add("train/masks/a.png", "no PNG");
  const auto data = read_data(config, modules, augmentations, options);
  EXPECT_TRUE(data->signature.classes.empty());
  EXPECT_TRUE(contains(data_error([&] { data->inspect(2); }), "a.png"));
}

TEST_F(OpenedData, TextTooShortForAWindowCanBeInspected) {
  config.path = folder.add("story.txt", "once upon").string();
  config.module = config::component_of(modules, "text");
  EXPECT_EQ(read_data(config, modules, augmentations, options)->inspect(1).texts[0].tokens, 9);
  EXPECT_THROW(open_data(config, modules, augmentations, options), DataError);
}

TEST(MaskedText, HidesTokensAsBertDoes) {
  TextSet text;
  std::vector<int32_t> tokens(20'001);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(i % 10);
  text.tokens = std::move(tokens);
  const auto samples = [&](uint64_t seed) {
    return MaskedText(std::make_unique<TextWindows>(text, 50, 1),
                      {.vocabulary = 10, .mask_token = 10}, seed);
  };
  const MaskedText masked = samples(3), same = samples(3), other = samples(4);
  const TextWindows plain(text, 50, 1);
  int64_t chosen = 0, hidden = 0, kept = 0, all = 0, differs = 0;
  for (int64_t i = 0; i < masked.size(); ++i) {
    std::vector<int64_t> input(50), labels(50), again(50), labels_again(50), original(50), next(50);
    ASSERT_TRUE(fill_row(masked, i, 2, input.data(), labels.data()));
    ASSERT_TRUE(fill_row(same, i, 2, again.data(), labels_again.data()));
    EXPECT_EQ(input, again);
    EXPECT_EQ(labels, labels_again);
    ASSERT_TRUE(fill_row(other, i, 2, again.data(), labels_again.data()));
    differs += labels != labels_again ? 1 : 0;
    ASSERT_TRUE(fill_row(plain, i, 2, original.data(), next.data()));
    int64_t here = 0;
    for (size_t t = 0; t < 50; ++t) {
      all += 1;
      if (labels[t] == kIgnoredTarget) {
        EXPECT_EQ(input[t], original[t]);
        continue;
      }
      here += 1;
      EXPECT_EQ(labels[t], original[t]);
      hidden += input[t] == 10 ? 1 : 0;
      kept += input[t] == original[t] ? 1 : 0;
    }
    EXPECT_GT(here, 0);
    chosen += here;
  }
  EXPECT_GT(differs, masked.size() / 2);
  const auto share = [](int64_t part, int64_t whole) {
    return static_cast<double>(part) / static_cast<double>(whole);
  };
  // 0.15, plus the position that is always chosen.
  EXPECT_NEAR(share(chosen, all), 0.15 + 0.85 / 50, 0.01);
  EXPECT_NEAR(share(hidden, chosen), 0.8, 0.02);
  EXPECT_NEAR(share(kept, chosen), 0.1 + 0.1 / 10, 0.02);
}

}  // namespace
}  // namespace gallop::data
