#include "gallop/data/split.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>

#include <nlohmann/json.hpp>

#include "gallop/data/group_split.h"
#include "gallop/data/memory_images.h"
#include "unit/data/expect_error.h"
#include "unit/fixtures.h"

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
  cut_images(parts, {.fraction = 0.25, .seed = 3});
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
  cut_text(parts, {.fraction = 0.2});
  EXPECT_EQ(parts.train->tokens.size(), 8u);
  EXPECT_EQ(parts.validation->tokens, (std::vector<int32_t>{0, 7}));
  EXPECT_EQ(parts.validation->vocabulary.size(), 2u);
}

TEST(CutValidation, RefusesWhatLeavesAPartEmpty) {
  ImageParts parts;
  parts.train = images_with(labels_of({1, 1}), 2);
  EXPECT_TRUE(contains(data_error([&] { cut_images(parts, {.fraction = 0.5, .seed = 1}); }),
                       "2 training images are too few"));
  EXPECT_EQ(parts.train->size(), 2) << "nothing is lost";
  TextParts text;
  text.train = std::make_unique<TextSet>();
  text.train->tokens = std::vector<int32_t>{1};
  EXPECT_TRUE(
      contains(data_error([&] { cut_text(text, {.fraction = 0.5}); }), "1 tokens are too few"));
  for (const double fraction : {0.0, 1.0, -0.1, 2.0}) {
    EXPECT_THROW(cut_images(parts, {.fraction = fraction, .seed = 1}), UsageError);
  }
}

// Every sample is in one fold, and each class is distributed equally, as by StratifiedKFold.
TEST(Folds, AreStratifiedAndDivideTheSamples) {
  for (const std::vector<int>& sizes : {std::vector<int>{100, 100}, {53, 7, 3}, {5}}) {
    std::vector<int64_t> labels;
    for (size_t label = 0; label < sizes.size(); ++label) {
      labels.insert(labels.end(), static_cast<size_t>(sizes[label]), static_cast<int64_t>(label));
    }
    const auto size = static_cast<int64_t>(labels.size());
    std::vector<int> seen(labels.size());
    std::vector<std::vector<int>> counts(5, std::vector<int>(sizes.size()));
    for (int64_t fold = 0; fold < 5; ++fold) {
      const IndexCut cut = cut_fold(size, labels, {.seed = 3, .folds = 5, .fold = fold});
      EXPECT_EQ(static_cast<int64_t>(cut.kept.size() + cut.taken.size()), size);
      EXPECT_TRUE(std::is_sorted(cut.taken.begin(), cut.taken.end()));
      for (const int64_t i : cut.taken) {
        ++seen[static_cast<size_t>(i)];
        ++counts[static_cast<size_t>(fold)][static_cast<size_t>(labels[static_cast<size_t>(i)])];
      }
      EXPECT_LE(std::abs(static_cast<double>(cut.taken.size()) - static_cast<double>(size) / 5), 1);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), size);
    for (size_t label = 0; label < sizes.size(); ++label) {
      for (const auto& of_fold : counts) {
        EXPECT_LE(std::abs(of_fold[label] - static_cast<double>(sizes[label]) / 5), 1);
      }
    }
    EXPECT_EQ(cut_fold(size, labels, {.seed = 3, .folds = 5}).taken,
              cut_fold(size, labels, {.seed = 3, .folds = 5}).taken);
  }
  EXPECT_NE(cut_fold(90, {}, {.seed = 3, .folds = 5}).taken,
            cut_fold(90, {}, {.seed = 4, .folds = 5}).taken);
}

TEST(Folds, KeepGroupsTogether) {
  std::vector<std::string> groups;
  for (int i = 0; i < 200; ++i) groups.push_back("patient" + std::to_string(i * i % 23));
  const auto expect_whole = [&](const IndexCut& cut) {
    std::set<std::string> kept;
    for (const int64_t i : cut.kept) kept.insert(groups[static_cast<size_t>(i)]);
    for (const int64_t i : cut.taken) EXPECT_FALSE(kept.contains(groups[static_cast<size_t>(i)]));
    EXPECT_EQ(cut.kept.size() + cut.taken.size(), groups.size());
  };
  std::vector<int> seen(groups.size());
  for (int64_t fold = 0; fold < 4; ++fold) {
    const IndexCut cut = cut_groups(groups, {}, {.seed = 1, .folds = 4, .fold = fold});
    expect_whole(cut);
    EXPECT_NEAR(static_cast<double>(cut.taken.size()), 50, 10);
    for (const int64_t i : cut.taken) ++seen[static_cast<size_t>(i)];
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 200);
  const IndexCut cut = cut_groups(groups, {}, {.fraction = 0.3, .seed = 1});
  expect_whole(cut);
  EXPECT_LE(cut.taken.size(), 60U);
  EXPECT_GE(cut.taken.size(), 40U);
  EXPECT_TRUE(
      contains(data_error([&] { cut_groups(groups, {}, {.folds = 30}); }), "fewer than 30"));
  EXPECT_TRUE(contains(data_error([&] {
                         cut_groups({"a", "a"}, {}, {.fraction = 0.5});
                       }),
                       "1 groups, too few"));
  EXPECT_TRUE(contains(data_error([&] {
                         cut_groups({"a", "a", "b", "b"}, {}, {.fraction = 0.1});
                       }),
                       "no group is small enough"));
}

// The results of scikit-learn, by tests/parity/make_folds.py.
TEST(Folds, AssignGroupsAsScikitLearn) {
  std::ifstream file(fixtures() / "folds.json");
  const auto json = nlohmann::json::parse(file);
  ASSERT_GE(json["cases"].size(), 8U);
  for (const auto& one : json["cases"]) {
    const auto counts = one["counts"].get<std::vector<std::vector<int64_t>>>();
    EXPECT_EQ(nlohmann::json(assign_groups(counts, one["folds"])), one["fold of group"])
        << one["folds"] << " folds of " << counts.size() << " groups";
  }
}

// Groups that differ in their classes: without stratification, folds would have few of some.
TEST(Folds, OfGroupsAreStratified) {
  std::vector<std::string> groups;
  std::vector<int64_t> labels;
  for (int i = 0; i < 400; ++i) {
    const int group = i * i % 41;
    groups.push_back("patient" + std::to_string(group));
    labels.push_back(group % 4 == 0 ? 1 : 0);
  }
  const double share = static_cast<double>(std::count(labels.begin(), labels.end(), 1)) / 400;
  std::vector<int> seen(groups.size());
  for (int64_t fold = 0; fold < 4; ++fold) {
    const IndexCut cut = cut_groups(groups, labels, {.seed = 1, .folds = 4, .fold = fold});
    double ones = 0;
    for (const int64_t i : cut.taken) {
      ++seen[static_cast<size_t>(i)];
      ones += static_cast<double>(labels[static_cast<size_t>(i)]);
    }
    EXPECT_NEAR(ones / static_cast<double>(cut.taken.size()), share, 0.1);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 400);
}

TEST(Folds, NameGroupsByFolderOrExpression) {
  const std::vector<std::string> names = {"in/cat/p1/a.png", "in/dog/p12/b.png"};
  const auto groups = [&](const std::string& group) {
    return groups_of(
        2, [&](int64_t i) { return names[static_cast<size_t>(i)]; }, group);
  };
  EXPECT_EQ(groups("folder"), (std::vector<std::string>{"in/cat/p1", "in/dog/p12"}));
  EXPECT_EQ(groups("/p(\\d+)/"), (std::vector<std::string>{"1", "12"}));
  EXPECT_EQ(groups("p\\d"), (std::vector<std::string>{"p1", "p1"}));
  EXPECT_TRUE(contains(data_error([&] { groups("x\\d"); }), "in/cat/p1/a.png"));
}

TEST(Folds, RejectContradictions) {
  const auto rejected = [](const Holdout& holdout) {
    try {
      check(holdout);
    } catch (const UsageError&) {
      return true;
    }
    return false;
  };
  EXPECT_TRUE(rejected({.folds = 1}));
  EXPECT_TRUE(rejected({.fold = 1}));
  EXPECT_TRUE(rejected({.folds = 3, .fold = 3}));
  EXPECT_TRUE(rejected({.fraction = 0.1, .folds = 3}));
  EXPECT_TRUE(rejected({.group = "folder"}));
  EXPECT_FALSE(rejected({.folds = 3, .group = "("}));  // It may be the name of a column.
  EXPECT_THROW(groups_of(
                   1, [](int64_t) { return std::string("a"); }, "("),
               UsageError);
  EXPECT_FALSE(rejected({.folds = 3, .fold = 2, .group = "(a)"}));
  EXPECT_FALSE(holds_out({}, false));
  EXPECT_FALSE(holds_out({.fraction = 0.1}, true));
  EXPECT_THROW(holds_out({.folds = 3}, true), UsageError);
  EXPECT_THROW(holds_out({.fraction = 0.1, .group = "folder"}, true), UsageError);
  TextParts text;
  text.train = std::make_unique<TextSet>();
  EXPECT_THROW(cut_text(text, {.folds = 2}), UsageError);
}

}  // namespace
}  // namespace gallop::data
