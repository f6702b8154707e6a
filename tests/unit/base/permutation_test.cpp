#include "gallop/base/permutation.h"

#include <cmath>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(Permutation, VisitsEverySampleOnceForAnySize) {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 64, 65, 1000, 4097}) {
    const Permutation permutation(1, 0, size);
    std::vector<bool> seen(static_cast<size_t>(size));
    for (int64_t i = 0; i < size; ++i) {
      const int64_t sample = permutation(i);
      ASSERT_GE(sample, 0);
      ASSERT_LT(sample, size);
      ASSERT_FALSE(seen[static_cast<size_t>(sample)]) << size << " at " << i;
      seen[static_cast<size_t>(sample)] = true;
    }
  }
}

TEST(Permutation, SeekIsIndependentOfHistoryAtABillionSamples) {
  const Permutation permutation(7, 3, 1'000'000'000);
  const int64_t late = permutation(987'654'321);
  EXPECT_EQ(late, Permutation(7, 3, 1'000'000'000)(987'654'321));
  EXPECT_LT(late, 1'000'000'000);
}

TEST(Permutation, SeedAndEpochChangeTheOrder) {
  const Permutation a(1, 0, 1000), b(1, 1, 1000), c(2, 0, 1000);
  int same_ab = 0, same_ac = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    same_ab += a(i) == b(i);
    same_ac += a(i) == c(i);
  }
  EXPECT_LT(same_ab, 20);
  EXPECT_LT(same_ac, 20);
}

// The distribution of the first position over many epochs: a chi-square test with 9 degrees of
// freedom; 33.7 is its 0.9999 quantile, and the draws are fixed.
TEST(Permutation, FirstPositionIsUniformOverEpochs) {
  std::vector<int> counts(10);
  const int epochs = 10000;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    ++counts[static_cast<size_t>(Permutation(5, static_cast<uint64_t>(epoch), 10)(0))];
  }
  double chi_square = 0;
  for (const int count : counts) chi_square += std::pow(count - epochs / 10.0, 2) / (epochs / 10.0);
  EXPECT_LT(chi_square, 33.7);
}

// Known answers of the paper's own test file (Random123, kat_vectors, philox4x32 10 rounds).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0}, {0, 0, 0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, PurposesAndItemsAreDifferentStreams) {
  std::set<uint64_t> firsts;
  for (const auto purpose : {Purpose::kShuffle, Purpose::kAugment, Purpose::kInit}) {
    for (uint64_t item = 0; item < 100; ++item) {
      firsts.insert(Philox(1, purpose, 0, item).next_u64());
    }
  }
  EXPECT_EQ(firsts.size(), 300u);
}

TEST(Philox, BelowIsUniform) {
  Philox random(1, Purpose::kAugment, 0, 0);
  std::vector<int> counts(5);
  for (int i = 0; i < 50000; ++i) ++counts[random.below(5)];
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);
}

}  // namespace
}  // namespace gallop
