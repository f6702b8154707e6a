#include "gallop/data/split.h"

#include <algorithm>
#include <numeric>

#include "gallop/data/memory_images.h"
#include "unit/data/expect_error.h"

namespace gallop::data {
namespace {

// One-pixel images with their index as value.
std::unique_ptr<MemoryImages> images_with(const std::vector<int32_t>& labels, int classes) {
  MemoryImages::Content content;
  content.shape = {1, 1, 1};
  std::vector<uint8_t> numbers(labels.size());
  std::iota(numbers.begin(), numbers.end(), uint8_t{0});
  content.pixels = std::move(numbers);
  content.labels = labels;
  for (int i = 0; i < classes; ++i) content.class_names.push_back("c" + std::to_string(i));
  content.describe = [](int64_t index) { return "item " + std::to_string(index); };
  return std::make_unique<MemoryImages>(std::move(content));
}

std::vector<int32_t> labels_of(const std::vector<int>& counts) {
  std::vector<int32_t> labels;
  for (size_t i = 0; i < counts.size(); ++i) {
    labels.insert(labels.end(), static_cast<size_t>(counts[i]), static_cast<int32_t>(i));
  }
  return labels;
}

TEST(CutByClass, LosesAndDoublesNothing) {
  const auto set = images_with(labels_of({37, 0, 100, 3}), 4);
  for (const double fraction : {0.0, 0.01, 0.1, 0.5, 0.99, 1.0}) {
    const IndexCut cut = cut_by_class(*set, fraction, 7);
    std::vector<int64_t> all = cut.kept;
    all.insert(all.end(), cut.taken.begin(), cut.taken.end());
    std::sort(all.begin(), all.end());
    ASSERT_EQ(all.size(), 140u);
    for (int64_t i = 0; i < 140; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], i);
    EXPECT_TRUE(std::is_sorted(cut.kept.begin(), cut.kept.end()));
    EXPECT_TRUE(std::is_sorted(cut.taken.begin(), cut.taken.end()));
  }
}

TEST(CutByClass, TakesTheSameShareOfEachClass) {
  const auto set = images_with(labels_of({100, 40, 9, 1, 2}), 5);
  const auto counts = [&](double fraction) {
    std::vector<int> taken(5);
    for (const int64_t i : cut_by_class(*set, fraction, 1).taken) {
      ++taken[static_cast<size_t>(set->label(i))];
    }
    return taken;
  };
  EXPECT_EQ(counts(0.1), (std::vector<int>{10, 4, 1, 0, 0}));
  // Every class keeps one image for training.
  EXPECT_EQ(counts(0.999), (std::vector<int>{99, 39, 8, 0, 1}));
  EXPECT_EQ(counts(0), std::vector<int>(5));
}

TEST(CutByClass, DependsOnTheSeedOnly) {
  const auto set = images_with(labels_of({100, 100}), 2);
  const auto first = cut_by_class(*set, 0.2, 5).taken;
  EXPECT_EQ(first, cut_by_class(*set, 0.2, 5).taken);
  EXPECT_NE(first, cut_by_class(*set, 0.2, 6).taken);
  EXPECT_EQ(first.size(), 40u);
  // Fixed permanently: a resumed run must split like the first one.
  EXPECT_EQ(std::vector<int64_t>(first.begin(), first.begin() + 4),
            (std::vector<int64_t>{1, 7, 9, 15}));
}

TEST(CutValidation, GivesViewsOfOneSet) {
  ImageParts parts;
  parts.train = images_with(labels_of({20, 20}), 2);
  cut_images(parts, 0.25, 3);
  ASSERT_EQ(parts.train->size(), 30);
  ASSERT_EQ(parts.validation->size(), 10);
  Image image;
  std::vector<bool> seen(40);
  for (const auto* set : {parts.train.get(), parts.validation.get()}) {
    for (int64_t i = 0; i < set->size(); ++i) {
      const uint8_t number = *set->stored_pixels(i);
      set->read(i, {.channels = 1}, image);
      EXPECT_EQ(image.pixels[0], number);
      EXPECT_EQ(set->describe(i), "item " + std::to_string(number));
      EXPECT_EQ(set->label(i), number / 20);
      EXPECT_FALSE(seen[number]);
      seen[number] = true;
    }
  }
}

TEST(CutValidation, CutsTextAtItsEnd) {
  TextParts parts;
  parts.train = std::make_unique<TextSet>();
  parts.train->tokens = std::vector<int32_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 7};
  parts.train->vocabulary = {"a", "b"};
  cut_text(parts, 0.2);
  EXPECT_EQ(parts.train->tokens.size(), 8u);
  EXPECT_EQ(parts.validation->tokens, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(parts.validation->vocabulary.size(), 2u);
}

TEST(CutValidation, RefusesWhatLeavesAPartEmpty) {
  ImageParts parts;
  parts.train = images_with(labels_of({1, 1}), 2);
  EXPECT_TRUE(
      contains(data_error([&] { cut_images(parts, 0.5, 1); }), "2 training images are too few"));
  EXPECT_EQ(parts.train->size(), 2) << "nothing is lost";
  TextParts text;
  text.train = std::make_unique<TextSet>();
  text.train->tokens = std::vector<int32_t>{1};
  EXPECT_TRUE(contains(data_error([&] { cut_text(text, 0.5); }), "1 tokens are too few"));
  for (const double fraction : {0.0, 1.0, -0.1, 2.0}) {
    EXPECT_THROW(cut_images(parts, fraction, 1), UsageError);
  }
}

}  // namespace
}  // namespace gallop::data
