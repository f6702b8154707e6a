#include "gallop/data/text_samples.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/data/image_fields.h"

namespace gallop::data {
namespace {

// Token i of the text is i.
TextSet counting(int tokens) {
  std::vector<int32_t> numbers(static_cast<size_t>(tokens));
  std::iota(numbers.begin(), numbers.end(), 0);
  return {.tokens = std::move(numbers), .vocabulary = {}};
}

struct Window {
  std::vector<int64_t> input, target;
};

Window fill(const Samples& samples, int64_t index, int64_t epoch = 0) {
  const auto context = static_cast<size_t>(samples.fields().input().shape.sizes[0]);
  Window window{std::vector<int64_t>(context, -1), std::vector<int64_t>(context, -1)};
  EXPECT_TRUE(fill_row(samples, index, epoch, window.input.data(), window.target.data()));
  return window;
}

TEST(TextWindows, ShiftsTheTargetByOneAndNeverLeavesTheText) {
  for (const int tokens : {9, 10, 15, 16, 17, 100, 101}) {
    const TextSet text = counting(tokens);
    const TextWindows windows(text, 8, 1);
    ASSERT_GE(windows.size(), 1);
    EXPECT_TRUE(windows.every_target_counts());
    std::set<int64_t> starts;
    for (int64_t epoch = 0; epoch < 200; ++epoch) {
      for (int64_t i = 0; i < windows.size(); ++i) {
        const Window window = fill(windows, i, epoch);
        for (size_t k = 0; k < 8; ++k) {
          EXPECT_EQ(window.input[k], window.input[0] + int64_t(k));
          EXPECT_EQ(window.target[k], window.input[k] + 1);
        }
        EXPECT_LT(window.target[7], tokens);
        starts.insert(window.input[0]);
      }
    }
    // Every token with enough tokens after it begins a window in some epoch.
    EXPECT_GE(int64_t(starts.size()), std::min<int64_t>(tokens - 8, windows.size() * 8)) << tokens;
  }
}

TEST(TextWindows, RefusesAShortText) {
  EXPECT_THROW(TextWindows(counting(8), 8, 1), DataError);
  const TextSet text = counting(9);
  EXPECT_EQ(TextWindows(text, 8, 1).size(), 1);
}

TEST(TextEvaluation, CountsEveryTokenOnceWithTheContextAskedFor) {
  for (const int tokens : {2, 5, 8, 9, 10, 16, 17, 18, 63, 64, 65}) {
    const TextSet text = counting(tokens);
    for (const int64_t stride : {0, 1, 3, 8}) {
      const TextEvaluation windows(text, 8, stride);
      EXPECT_FALSE(windows.every_target_counts());
      std::multiset<int64_t> counted;
      for (int64_t i = 0; i < windows.size(); ++i) {
        const Window window = fill(windows, i);
        for (size_t k = 0; k < 8; ++k) {
          if (window.target[k] == kIgnoredTarget) continue;
          EXPECT_EQ(window.target[k], window.input[k] + 1);
          if (i > 0 && stride > 0) {
            EXPECT_GE(int64_t(k), 8 - stride);
          }
          counted.insert(window.target[k]);
        }
      }
      EXPECT_EQ(int64_t(counted.size()), tokens - 1) << tokens << " " << stride;
      EXPECT_EQ(std::set(counted.begin(), counted.end()).size(), counted.size());
    }
  }
}

TEST(TextEvaluation, RefusesWhatCannotBe) {
  EXPECT_THROW(TextEvaluation(counting(1), 8, 0), DataError);
  EXPECT_THROW(TextEvaluation(counting(20), 8, 9), UsageError);
}

}  // namespace
}  // namespace gallop::data
