#include "gallop/parallel/pipeline_cut.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

namespace gallop::parallel {
namespace {

double cost_of(const std::vector<double>& costs, const StageBlocks& stage) {
  double cost = 0;
  for (int64_t i = stage.begin; i < stage.end; ++i) cost += costs[static_cast<size_t>(i)];
  return cost;
}

// The least that the most expensive of so many stages can cost, by trying all cuts.
double least_cost(const std::vector<double>& costs, size_t begin, int stages) {
  const auto blocks = static_cast<int64_t>(costs.size());
  const auto first = static_cast<int64_t>(begin);
  if (stages == 1) return cost_of(costs, {first, blocks});
  double least = std::numeric_limits<double>::infinity();
  for (int64_t end = first + 1; end + stages - 1 <= blocks; ++end) {
    least = std::min(least, std::max(cost_of(costs, {first, end}),
                                     least_cost(costs, static_cast<size_t>(end), stages - 1)));
  }
  return least;
}

TEST(PipelineCut, BalancesStages) {
  EXPECT_EQ(cut_blocks({1, 1, 1, 1}, 2), (std::vector<StageBlocks>{{0, 2}, {2, 4}}));
  EXPECT_EQ(cut_blocks({5, 1, 1, 1}, 2), (std::vector<StageBlocks>{{0, 1}, {1, 4}}));
  EXPECT_EQ(cut_blocks({1, 1, 1, 1, 8}, 3), (std::vector<StageBlocks>{{0, 1}, {1, 4}, {4, 5}}));
  EXPECT_EQ(cut_blocks({3, 2, 1}, 3), (std::vector<StageBlocks>{{0, 1}, {1, 2}, {2, 3}}));
}

TEST(PipelineCut, HasTheLeastCostOfAllCuts) {
  std::minstd_rand draw(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<double> costs(1 + draw() % 9);
    for (double& cost : costs) cost = static_cast<double>(1 + draw() % 20);
    const int stages = 1 + static_cast<int>(draw() % costs.size());
    const auto cut = cut_blocks(costs, stages);
    ASSERT_EQ(cut.size(), static_cast<size_t>(stages));
    int64_t next = 0;
    double most = 0;
    for (const StageBlocks& stage : cut) {
      EXPECT_EQ(stage.begin, next);
      EXPECT_GT(stage.end, stage.begin);
      next = stage.end;
      most = std::max(most, cost_of(costs, stage));
    }
    EXPECT_EQ(next, static_cast<int64_t>(costs.size()));
    EXPECT_EQ(most, least_cost(costs, 0, stages));
  }
}

}  // namespace
}  // namespace gallop::parallel
