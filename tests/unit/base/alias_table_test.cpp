#include "gallop/base/alias_table.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop {
namespace {

// Within five standard deviations for every weight.
TEST(AliasTable, DrawsInProportionToItsWeights) {
  constexpr int64_t kDraws = 200'000;
  for (const std::vector<double>& weights : {std::vector<double>{1},
                                             {3, 1},
                                             {0, 2, 0, 5, 1e-9, 0},
                                             {1, 1, 1, 1, 1},
                                             {0.1, 100, 7, 7, 0.001}}) {
    const AliasTable table(weights);
    std::vector<int64_t> counts(weights.size());
    double sum = 0;
    for (const double weight : weights) sum += weight;
    for (int64_t i = 0; i < kDraws; ++i) {
      Philox random(3, Purpose::kDraw, 0, static_cast<uint64_t>(i));
      ++counts[static_cast<size_t>(table.draw(random))];
    }
    for (size_t i = 0; i < weights.size(); ++i) {
      const double p = weights[i] / sum, mean = p * kDraws;
      EXPECT_LE(std::abs(static_cast<double>(counts[i]) - mean), 5 * std::sqrt(mean * (1 - p)) + 1);
      EXPECT_TRUE(weights[i] > 0 || counts[i] == 0);
    }
  }
}

TEST(AliasTable, RejectsWeightsThatAreNoDistribution) {
  for (const std::vector<double>& weights :
       {std::vector<double>{}, {0, 0}, {1, -1}, {1, NAN}, {1, INFINITY}}) {
    EXPECT_THROW(AliasTable{weights}, InternalError);
  }
}

}  // namespace
}  // namespace gallop
