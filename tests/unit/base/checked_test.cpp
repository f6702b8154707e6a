#include "gallop/base/checked.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace gallop {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Checked, ReportsOverflow) {
  EXPECT_EQ(checked_add<int64_t>(kMost - 1, 1), kMost);
  EXPECT_FALSE(checked_add<int64_t>(kMost, 1));
  EXPECT_EQ(checked_multiply<uint32_t>(0xFFFF, 0x10001), 0xFFFFFFFFU);
  EXPECT_FALSE(checked_multiply<uint32_t>(0x10000, 0x10000));
  EXPECT_EQ(checked_cast<uint8_t>(255), uint8_t{255});
  EXPECT_FALSE(checked_cast<uint8_t>(256));
  EXPECT_FALSE(checked_cast<uint64_t>(-1));
  EXPECT_FALSE(checked_cast<int64_t>(std::numeric_limits<uint64_t>::max()));
}

TEST(Checked, ProductOfSizes) {
  EXPECT_EQ(checked_product(std::vector<int64_t>{}), 1);
  EXPECT_EQ(checked_product(std::vector<int64_t>{3, 0, kMost}), 0);
  EXPECT_EQ(checked_product(std::vector<int64_t>{1 << 20, 1 << 20, 1 << 20}), int64_t{1} << 60);
  EXPECT_FALSE(checked_product(std::vector<int64_t>{1 << 22, 1 << 22, 1 << 20}));
  EXPECT_FALSE(checked_product(std::vector<int64_t>{2, -1}));
}

}  // namespace
}  // namespace gallop
