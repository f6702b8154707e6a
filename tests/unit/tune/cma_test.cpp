#include <cmath>
#include <fstream>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/cma/distribution.h"
#include "gallop/tune/cma/margin.h"
#include "unit/fixtures.h"

namespace gallop::tune {
namespace {

using Json = nlohmann::json;
using Vector = std::vector<double>;

void expect_near(const Vector& values, const Json& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = expected[i];
    EXPECT_NEAR(values[i], value, 1e-9 * (1 + std::abs(value))) << i;
  }
}

CmaMargin margin_of(size_t dimensions, double step) {
  std::vector<CmaMargin::Limits> limits(dimensions);
  for (size_t i = 0; i < dimensions && step > 0; i += 2) {
    limits[i] = [step](double at) -> Range {
      const double value = value_at(Interval{.step = step}, at);
      const Range inner{step / 2, 1 - step / 2};
      if (value == 0) return {inner.low, inner.low};
      if (value == 1) return {inner.high, inner.high};
      return {value - step / 2, value + step / 2};
    };
  }
  return CmaMargin(std::move(limits));
}

TEST(Cma, MatchesThePackageCmaes) {
  std::ifstream file(fixtures() / "cma.json");
  const Json fixture = Json::parse(file);
  ASSERT_EQ(fixture.at("cases").size(), 8u);
  for (const Json& expected : fixture.at("cases")) {
    CmaDistribution distribution({.mean = expected.at("mean"),
                                  .deviation = expected.at("sigma"),
                                  .population = expected.at("population"),
                                  .adapt_rates = expected.at("adapt_rates")});
    CmaMargin margin = margin_of(distribution.dimensions(), expected.at("step"));
    for (const Json& generation : expected.at("generations")) {
      SCOPED_TRACE(testing::Message()
                   << distribution.dimensions() << " dimensions, step " << expected.at("step"));
      std::vector<CmaDistribution::Solution> solutions;
      for (const auto& row : generation.at("told").get<std::vector<Vector>>()) {
        solutions.push_back({Vector(row.begin(), row.end() - 1), row.back()});
      }
      distribution.tell(solutions);
      margin.correct(distribution);
      expect_near(distribution.mean(), generation.at("mean"));
      expect_near({distribution.sigma()}, Json::array({generation.at("sigma")}));
      expect_near(distribution.covariance().values(), generation.at("covariance"));
      if (generation.contains("factors")) expect_near(margin.factors(), generation.at("factors"));
    }
  }
}

TEST(Cma, HasThePublishedPopulationSizes) {
  std::vector<size_t> populations;
  for (const size_t dimensions : {1, 2, 5, 10, 100}) {
    populations.push_back(CmaDistribution::default_population(dimensions));
  }
  EXPECT_EQ(populations, (std::vector<size_t>{4, 6, 8, 10, 17}));
}

TEST(Cma, SamplesItsCovariance) {
  CmaDistribution distribution({.mean = {1, -1}, .deviation = 0.5});
  std::vector<CmaDistribution::Solution> solutions;
  for (int i = 0; i < 6; ++i) solutions.push_back({{1 + 0.3 * i, -1 + 0.2 * i}, i * 1.0});
  distribution.tell(solutions);
  double sum = 0, product = 0;
  constexpr int kDraws = 20'000;
  for (int64_t trial = 0; trial < kDraws; ++trial) {
    Random random(1, trial);
    const Vector point = distribution.sample(random);
    const Vector off{point[0] - distribution.mean()[0], point[1] - distribution.mean()[1]};
    sum += off[0] * off[0] / std::pow(distribution.deviation(0), 2);
    product += off[0] * off[1];
  }
  const double covariance = std::pow(distribution.sigma(), 2) * distribution.covariance().at(0, 1);
  EXPECT_NEAR(sum / kDraws, 1, 0.05);
  EXPECT_NEAR(product / kDraws, covariance,
              0.05 * distribution.deviation(0) * distribution.deviation(1));
}

TEST(Cma, ClipsDistantInjectedPoints) {
  const CmaDistribution distribution({.mean = {0.5, 0.5}, .deviation = 0.1});
  EXPECT_EQ(distribution.injected({0.55, 0.45}), (Vector{0.55, 0.45}));
  const Vector far = distribution.injected({1.5, 0.5});
  EXPECT_NEAR(far[0], 0.5 + 0.1 * (std::sqrt(2) + 1), 1e-12);
  EXPECT_EQ(far[1], 0.5);
}

TEST(Cma, DetectsConvergence) {
  CmaDistribution distribution({.mean = {0.4, 0.6}, .deviation = 0.2});
  int generation = 0;
  for (; !distribution.has_converged() && generation < 1000; ++generation) {
    std::vector<CmaDistribution::Solution> solutions;
    Random random(1, generation);
    for (size_t i = 0; i < distribution.population(); ++i) {
      Vector point = distribution.sample(random);
      const double loss = point[0] * point[0] + 100 * point[1] * point[1];
      solutions.push_back({std::move(point), loss});
    }
    std::sort(solutions.begin(), solutions.end(), [](auto& a, auto& b) { return a.loss < b.loss; });
    distribution.tell(solutions);
  }
  EXPECT_LT(generation, 300);
  EXPECT_NEAR(distribution.mean()[0], 0, 1e-4);
  EXPECT_NEAR(distribution.mean()[1], 0, 1e-4);
}

TEST(SymmetricEigen, DecomposesMatrices) {
  for (const size_t size : {1, 2, 3, 10, 30}) {
    SquareMatrix matrix(size);
    Random random(1, static_cast<int64_t>(size));
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j) matrix.at(i, j) = matrix.at(j, i) = random.normal();
    }
    const EigenSystem system = symmetric_eigen(matrix);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        double value = 0, product = 0;
        for (size_t k = 0; k < size; ++k) {
          const double a = system.vectors.at(i, k), b = system.vectors.at(j, k);
          value += a * system.values[k] * b;
          product += a * b;
        }
        EXPECT_NEAR(value, matrix.at(i, j), 1e-13 * static_cast<double>(size));
        EXPECT_NEAR(product, i == j ? 1 : 0, 1e-13);
      }
    }
  }
}

}  // namespace
}  // namespace gallop::tune
