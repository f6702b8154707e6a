#include "gallop/tune/samplers/kernel_sum.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "gallop/tune/random.h"

namespace gallop::tune {
namespace {

struct Case {
  std::vector<double> weights, constants, centers, scales;
  std::vector<int32_t> rows;
  std::vector<KernelQuery> queries;

  KernelColumns columns() const {
    return {.count = weights.size(),
            .weights = weights.data(),
            .constants = constants.data(),
            .bells = {{centers.data(), scales.data()}},
            .rows = {rows.data()}};
  }
};

Case make_case(size_t count, double shift) {
  Random random(3, static_cast<int64_t>(count));
  Case made;
  for (size_t i = 0; i < count; ++i) {
    made.weights.push_back(random.uniform() / static_cast<double>(count));
    made.constants.push_back(shift + random.uniform(-2, 2));
    made.centers.push_back(random.uniform());
    made.scales.push_back(random.uniform(1, 60));
    made.rows.push_back(static_cast<int32_t>(random.below(3)));
  }
  for (int i = 0; i < 5; ++i) {
    made.queries.push_back({.at = {random.uniform(-1, 2)}, .tables = {{-1.5, 0.25, -700}}});
  }
  return made;
}

double plain(const Case& made, const KernelQuery& query) {
  std::vector<double> logarithms;
  for (size_t k = 0; k < made.weights.size(); ++k) {
    const double distance = (query.at[0] - made.centers[k]) * made.scales[k];
    logarithms.push_back(made.constants[k] - distance * distance +
                         query.tables[0][static_cast<size_t>(made.rows[k])]);
  }
  const double largest = *std::max_element(logarithms.begin(), logarithms.end());
  double sum = 0;
  for (size_t k = 0; k < logarithms.size(); ++k) {
    sum += made.weights[k] * std::exp(logarithms[k] - largest);
  }
  return largest + std::log(sum);
}

TEST(LogDensities, MatchTheLogarithmOfTheSum) {
  for (const size_t count : {1, 2, 7, 8, 255, 256, 257, 1000}) {
    for (const double shift : {0.0, -3000.0, 5000.0}) {
      SCOPED_TRACE(std::to_string(count) + " kernels, shift " + std::to_string(shift));
      const Case made = make_case(count, shift);
      const auto densities = log_densities(made.columns(), made.queries);
      for (size_t i = 0; i < made.queries.size(); ++i) {
        const double wanted = plain(made, made.queries[i]);
        EXPECT_NEAR(densities[i], wanted, 1e-12 * std::max(1.0, std::abs(wanted)));
      }
    }
  }
}

TEST(LogDensities, HandleKernelsFarFromAQuery) {
  Case made = make_case(300, 0);
  for (KernelQuery& query : made.queries) query.tables[0] = {-INFINITY, -INFINITY, 0};
  for (size_t k = 0; k < 300; ++k) made.rows[k] = k < 290 ? 1 : 2;
  const auto densities = log_densities(made.columns(), made.queries);
  for (size_t i = 0; i < made.queries.size(); ++i) {
    EXPECT_NEAR(densities[i], plain(made, made.queries[i]), 1e-10);
  }
  made.rows.assign(300, 0);
  for (const double density : log_densities(made.columns(), made.queries)) {
    EXPECT_EQ(density, -INFINITY);
  }
}

TEST(MergedKernels, AreTheSameMixture) {
  Random random(5, 0);
  std::vector<double> weights, constants(500, 0.0);
  std::vector<std::vector<int32_t>> rows(2);
  for (int i = 0; i < 500; ++i) {
    weights.push_back(random.uniform());
    rows[0].push_back(static_cast<int32_t>(random.below(7)));
    rows[1].push_back(static_cast<int32_t>(random.below(12)));
  }
  const KernelColumns columns{.count = weights.size(),
                              .weights = weights.data(),
                              .constants = constants.data(),
                              .rows = {rows[0].data(), rows[1].data()}};
  MergedKernels merged;
  ASSERT_TRUE(merged.merge(columns));
  EXPECT_LE(merged.columns().count, 7 * 12);
  std::vector<KernelQuery> queries(3);
  for (KernelQuery& query : queries) {
    for (const size_t size : {7, 12}) {
      auto& table = query.tables.emplace_back();
      for (size_t i = 0; i < size; ++i) table.push_back(random.uniform(-20, 0));
    }
  }
  const auto wanted = log_densities(columns, queries);
  const auto found = log_densities(merged.columns(), queries);
  for (size_t i = 0; i < queries.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12);
}

TEST(MergedKernels, AreNotUsedIfTheySaveLittle) {
  const Case bells = make_case(500, 0);
  MergedKernels merged;
  EXPECT_FALSE(merged.merge(bells.columns()));
  std::vector<int32_t> different(500);
  std::iota(different.begin(), different.end(), 0);
  const std::vector<double> weights(500, 1.0), constants(500, 0.0);
  EXPECT_FALSE(merged.merge({.count = 500,
                             .weights = weights.data(),
                             .constants = constants.data(),
                             .rows = {different.data()}}));
}

}  // namespace
}  // namespace gallop::tune
