#include "gallop/compile/free_ranges.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace gallop::compile {
namespace {

using Ranges = std::map<int64_t, int64_t>;

TEST(FreeRanges, BlocksAreConsecutive) {
  FreeRanges ranges(100, 1000);
  EXPECT_EQ(ranges.highest(), 100);
  EXPECT_EQ(ranges.take(50), 100);
  EXPECT_EQ(ranges.take(10), 150);
  EXPECT_EQ(ranges.ranges(), (Ranges{{160, 1000}}));
  EXPECT_EQ(ranges.highest(), 160);
}

TEST(FreeRanges, UsesTheSmallestSufficientRange) {
  FreeRanges ranges(0, 1000);
  for (const int64_t bytes : {100, 1, 30, 1, 40, 1}) ranges.take(bytes);
  ranges.release(0, 100);
  ranges.release(101, 30);
  ranges.release(132, 40);
  EXPECT_EQ(ranges.take(35), 132);
  EXPECT_EQ(ranges.take(30), 101);
  EXPECT_EQ(ranges.take(30), 0);
  EXPECT_EQ(ranges.ranges(), (Ranges{{30, 100}, {167, 172}, {173, 1000}}));
}

TEST(FreeRanges, AdjacentRangesAreMerged) {
  FreeRanges ranges(0, 40);
  for (int i = 0; i < 4; ++i) ranges.take(10);
  EXPECT_TRUE(ranges.ranges().empty());
  ranges.release(10, 10);
  ranges.release(30, 10);
  EXPECT_EQ(ranges.ranges(), (Ranges{{10, 20}, {30, 40}}));
  ranges.release(20, 10);
  EXPECT_EQ(ranges.ranges(), (Ranges{{10, 40}}));
  ranges.release(0, 10);
  EXPECT_EQ(ranges.ranges(), (Ranges{{0, 40}}));
  EXPECT_EQ(ranges.highest(), 40);
}

TEST(FreeRanges, RejectsBlocksThatAreTooLarge) {
  FreeRanges ranges(0, 20);
  EXPECT_EQ(ranges.take(21), -1);
  EXPECT_EQ(ranges.take(20), 0);
  EXPECT_EQ(ranges.take(1), -1);
}

TEST(FreeRanges, BlocksNeverOverlapInAnyOrder) {
  constexpr int64_t kEnd = 5000;
  std::mt19937 draw(1);
  FreeRanges ranges(0, kEnd);
  std::vector<std::pair<int64_t, int64_t>> blocks;
  std::vector<bool> used(kEnd);
  for (int turn = 0; turn < 2000; ++turn) {
    if (draw() % 2 == 0 && !blocks.empty()) {
      const auto at = static_cast<std::ptrdiff_t>(draw() % blocks.size());
      const auto [offset, bytes] = blocks[static_cast<size_t>(at)];
      ranges.release(offset, bytes);
      std::fill_n(used.begin() + offset, bytes, false);
      blocks.erase(blocks.begin() + at);
    } else {
      const int64_t bytes = 1 + draw() % 200;
      const int64_t offset = ranges.take(bytes);
      if (offset < 0) continue;
      ASSERT_LE(offset + bytes, kEnd);
      ASSERT_EQ(std::count(used.begin() + offset, used.begin() + offset + bytes, true), 0);
      std::fill_n(used.begin() + offset, bytes, true);
      blocks.emplace_back(offset, bytes);
    }
    int64_t free = 0, before = -1;
    for (const auto& [offset, end] : ranges.ranges()) {
      ASSERT_GT(offset, before);
      free += end - offset;
      before = end;
    }
    ASSERT_EQ(free, std::count(used.begin(), used.end(), false));
  }
}

}  // namespace
}  // namespace gallop::compile
