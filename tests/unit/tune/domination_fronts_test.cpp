#include "gallop/tune/pareto/domination_fronts.h"

#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/random.h"

namespace gallop::tune {
namespace {

/// Losses with many duplicates or none; some are infinite or NaN.
std::vector<double> random_row(Random& random, size_t objectives, bool has_ties) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kOdd[] = {kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN()};
  std::vector<double> row;
  for (size_t i = 0; i < objectives; ++i) {
    const double loss = has_ties ? static_cast<double>(random.below(6)) : random.uniform();
    row.push_back(random.below(20) == 0 ? kOdd[random.below(3)] : loss);
  }
  return row;
}

using Rows = std::map<int64_t, std::vector<double>>;

void expect_ranks(DominationFronts& fronts, const Rows& rows) {
  ASSERT_EQ(fronts.size(), rows.size());
  std::map<int64_t, int32_t> found, expected;
  int32_t rank = 0;
  for (const DominationFronts::Front& front : fronts.fronts()) {
    ASSERT_FALSE(front.rows.empty());
    for (const int64_t row : front.rows) found[row] = rank;
    ++rank;
  }
  LossRows losses;
  for (const auto& [row, of_row] : rows) losses.push_back(of_row);
  const std::vector<int32_t> ranks = domination_ranks(losses);
  auto next = ranks.begin();
  for (const auto& [row, of_row] : rows) expected[row] = *next++;
  ASSERT_EQ(found, expected);
}

TEST(DominationFronts, RanksAreExactAfterEachInsertionAndRemoval) {
  for (int64_t trial = 0; trial < 12; ++trial) {
    const size_t objectives = 2 + static_cast<size_t>(trial) % 3;
    SCOPED_TRACE(testing::Message() << objectives << " objectives, trial " << trial);
    Random random(1, trial);
    DominationFronts fronts(objectives);
    Rows rows;
    for (int64_t row = 0; row < 200; ++row) {
      const bool is_copy = !rows.empty() && random.below(10) == 0;
      rows[row] = is_copy ? rows.begin()->second : random_row(random, objectives, trial % 2 == 0);
      fronts.insert(row, rows[row]);
      expect_ranks(fronts, rows);
      if (random.below(10) != 0) continue;
      const auto gone = std::next(rows.begin(), static_cast<ptrdiff_t>(random.below(rows.size())));
      fronts.erase(gone->first);
      rows.erase(gone);
      expect_ranks(fronts, rows);
    }
  }
}

TEST(DominationFronts, SupportsBatchedChanges) {
  for (const size_t objectives : {2, 3, 4}) {
    Random random(2, static_cast<int64_t>(objectives));
    DominationFronts fronts(objectives);
    Rows rows;
    const auto insert = [&](int64_t row) {
      rows[row] = random_row(random, objectives, true);
      fronts.insert(row, rows[row]);
    };
    const auto erase = [&](int64_t row) {
      rows.erase(row);
      fronts.erase(row);
    };
    for (int64_t row = 0; row < 300; ++row) insert(row);
    erase(7);  // Not yet ranked.
    expect_ranks(fronts, rows);
    for (int64_t row = 300; row < 310; ++row) insert(row);
    expect_ranks(fronts, rows);
    for (int64_t row = 310; row < 320; ++row) insert(row);
    for (const int64_t row : {0, 100, 311}) erase(row);
    insert(100);  // With other losses.
    expect_ranks(fronts, rows);
    for (int64_t row = 0; row < 320; ++row) {
      if (rows.contains(row)) erase(row);
    }
    expect_ranks(fronts, rows);
  }
}

TEST(DominationFronts, ARowThatDominatesAFrontMovesAllFollowingFronts) {
  DominationFronts fronts(2);
  Rows rows;
  for (int64_t row = 0; row < 40; ++row) {
    const auto layer = static_cast<double>(10 * (row % 4)), along = static_cast<double>(row / 4);
    rows[row] = {layer + along, layer - along};
    fronts.insert(row, rows[row]);
  }
  expect_ranks(fronts, rows);
  ASSERT_EQ(fronts.fronts().size(), 4);
  rows[40] = {-1, -20};
  fronts.insert(40, rows[40]);
  expect_ranks(fronts, rows);
  EXPECT_EQ(fronts.fronts().size(), 5);
}

}  // namespace
}  // namespace gallop::tune
