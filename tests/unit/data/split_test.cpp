#include "gallop/data/split.h"

#include <gtest/gtest.h>

#include <set>

#include "gallop/base/error.h"

namespace gallop::data {
namespace {

std::vector<int64_t> labels_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> labels;
  for (size_t label = 0; label < sizes.size(); ++label) {
    labels.insert(labels.end(), static_cast<size_t>(sizes[label]), static_cast<int64_t>(label));
  }
  return labels;
}

int64_t count_label(const std::vector<int64_t>& indices, const std::vector<int64_t>& labels,
                    int64_t label) {
  return std::count_if(indices.begin(), indices.end(), [&](int64_t index) {
    return labels[static_cast<size_t>(index)] == label;
  });
}

TEST(CutByClass, TakesTheSharePerClassAndLosesNothing) {
  const auto labels = labels_of({100, 50, 7, 1});
  const Cut cut = cut_by_class(labels, 4, 0.2, 1);
  EXPECT_EQ(count_label(cut.held_back, labels, 0), 20);
  EXPECT_EQ(count_label(cut.held_back, labels, 1), 10);
  EXPECT_EQ(count_label(cut.held_back, labels, 2), 1);
  EXPECT_EQ(count_label(cut.held_back, labels, 3), 0);
  std::set<int64_t> all(cut.kept.begin(), cut.kept.end());
  all.insert(cut.held_back.begin(), cut.held_back.end());
  EXPECT_EQ(all.size(), labels.size());
  EXPECT_EQ(cut.kept.size() + cut.held_back.size(), labels.size());
}

TEST(CutByClass, IsDecidedByTheSeed) {
  const auto labels = labels_of({100, 100});
  EXPECT_EQ(cut_by_class(labels, 2, 0.3, 1).held_back, cut_by_class(labels, 2, 0.3, 1).held_back);
  EXPECT_NE(cut_by_class(labels, 2, 0.3, 1).held_back, cut_by_class(labels, 2, 0.3, 2).held_back);
}

TEST(CutByClass, LeavesEveryClassOneImage) {
  const auto labels = labels_of({3, 2});
  const Cut cut = cut_by_class(labels, 2, 0.99, 1);
  EXPECT_EQ(count_label(cut.kept, labels, 0), 1);
  EXPECT_EQ(count_label(cut.kept, labels, 1), 1);
}

Parts text_parts(int32_t size) {
  Parts parts;
  parts.train_text = std::make_unique<TextSet>();
  for (int32_t i = 0; i < size; ++i) parts.train_text->tokens.push_back(i);
  parts.train_text->vocabulary = {"a"};
  return parts;
}

TEST(HoldBackValidation, CutsATextAtItsEnd) {
  Parts parts = text_parts(100);
  hold_back_validation(parts, 0.1, 1);
  EXPECT_EQ(parts.train_text->tokens.size(), 90u);
  ASSERT_TRUE(parts.validation_text);
  EXPECT_EQ(parts.validation_text->tokens.front(), 90);
  EXPECT_EQ(parts.validation_text->tokens.size(), 10u);
  EXPECT_EQ(parts.validation_text->vocabulary, parts.train_text->vocabulary);
}

TEST(HoldBackValidation, KeepsAValidationPartThatTheDataHave) {
  Parts parts = text_parts(100);
  parts.validation_text = std::make_unique<TextSet>();
  hold_back_validation(parts, 0.5, 1);
  EXPECT_EQ(parts.train_text->tokens.size(), 100u);
}

TEST(HoldBackValidation, RefusesACutThatLeavesNothing) {
  Parts parts = text_parts(3);
  EXPECT_THROW(hold_back_validation(parts, 0.01, 1), DataError);
}

}  // namespace
}  // namespace gallop::data
