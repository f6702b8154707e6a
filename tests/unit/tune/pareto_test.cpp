#include "gallop/tune/pareto/pareto.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/random.h"
#include "unit/fixtures.h"

namespace gallop::tune {
namespace {

using Json = nlohmann::json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossRows random_rows(size_t count, size_t objectives, int64_t trial, size_t values) {
  Random random(1, trial);
  LossRows rows(count);
  for (auto& row : rows) {
    for (size_t i = 0; i < objectives; ++i)
      row.push_back(static_cast<double>(random.below(values)));
  }
  return rows;
}

void expect_near(const std::vector<double>& values, const Json& expected) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = expected[i].is_null() ? kInfinity : expected[i].get<double>();
    if (values[i] == value) continue;
    EXPECT_NEAR(values[i], value, 1e-12 * (1 + std::abs(value))) << i;
  }
}

TEST(Pareto, AgreesWithOptuna) {
  std::ifstream file(fixtures() / "pareto.json");
  const Json fixture = Json::parse(file);
  ASSERT_GT(fixture.at("cases").size(), 10u);
  for (const Json& expected : fixture.at("cases")) {
    const auto losses = expected.at("losses").get<LossRows>();
    const auto front = expected.at("front").get<LossRows>();
    const auto reference = reference_point(losses);
    SCOPED_TRACE(testing::Message() << reference.size() << " objectives, " << losses.size());
    EXPECT_EQ(domination_ranks(losses), expected.at("ranks"));
    EXPECT_EQ(domination_ranks(losses, expected.at("violations")),
              expected.at("constrained_ranks"));
    expect_near(reference, expected.at("reference"));
    expect_near({hypervolume(losses, reference)}, Json::array({expected.at("hypervolume")}));
    expect_near(hypervolume_contributions(losses, reference), expected.at("contributions"));
    auto selected = select_by_hypervolume(front, expected.at("count"), reference);
    std::sort(selected.begin(), selected.end());
    EXPECT_EQ(selected, expected.at("selected").get<std::vector<size_t>>());
    LossRows unique = front;
    std::sort(unique.begin(), unique.end());
    unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
    expect_near(crowding_distances(unique), expected.at("crowding"));
  }
}

TEST(Pareto, RanksMatchRepeatedRemovalOfFronts) {
  for (int64_t trial = 0; trial < 60; ++trial) {
    const size_t objectives = 1 + static_cast<size_t>(trial) % 4;
    const LossRows rows = random_rows(40, objectives, trial, trial % 2 == 0 ? 6 : 1000);
    const auto ranks = domination_ranks(rows);
    for (size_t i = 0; i < rows.size(); ++i) {
      int32_t above = -1;  // The worst rank of those that dominate it.
      for (size_t j = 0; j < rows.size(); ++j) {
        if (dominates(rows[j], rows[i])) above = std::max(above, ranks[j]);
      }
      EXPECT_EQ(ranks[i], above + 1);
    }
    for (const size_t index : nondominated(rows)) EXPECT_EQ(ranks[index], 0);
  }
}

TEST(Pareto, TheFirstOfEqualRowsIsOnTheFront) {
  EXPECT_EQ(nondominated({{2, 1}, {1, 2}, {2, 1}, {1, 3}, {1, 2}}), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(nondominated({{3, 2, 1}, {1, 2, 3}, {3, 2, 1}, {3, 2, 2}}),
            (std::vector<size_t>{0, 1}));
  EXPECT_EQ(nondominated({}), std::vector<size_t>());
}

TEST(Pareto, NanIsWorstAndInfinityIsOrdered) {
  EXPECT_TRUE(dominates({1, kInfinity}, {NAN, kInfinity}));
  EXPECT_FALSE(dominates({NAN, 1}, {kInfinity, 1}));
  EXPECT_EQ(domination_ranks({{NAN, 0}, {1, 0}, {kInfinity, 0}, {0, NAN}, {-kInfinity, 5}}),
            (std::vector<int32_t>{1, 0, 1, 1, 0}));
  EXPECT_EQ(domination_ranks({{0, 0}, {1, 1}, {2, 2}}, {NAN, 3, -1}),
            (std::vector<int32_t>{2, 1, 0}));
  EXPECT_EQ(hypervolume({{-kInfinity, 0}, {0, 0}}, {1, 1}), kInfinity);
  EXPECT_EQ(hypervolume({{NAN, 0}, {0, 0.5}, {0, 2}}, {1, 1}), 0.5);
  EXPECT_EQ(hypervolume({{0, 0}}, {kInfinity, 1}), kInfinity);
}

/// The share of points of a grid that are dominated, as the losses are whole numbers.
double counted_volume(const LossRows& rows, size_t side, size_t objectives) {
  size_t cells = 1, dominated = 0;
  for (size_t i = 0; i < objectives; ++i) cells *= side;
  for (size_t cell = 0; cell < cells; ++cell) {
    std::vector<double> corner;
    for (size_t rest = cell; corner.size() < objectives; rest /= side) {
      corner.push_back(static_cast<double>(rest % side));
    }
    const auto covers = [&](const std::vector<double>& row) {
      return std::equal(row.begin(), row.end(), corner.begin(), std::less_equal<>());
    };
    dominated += std::any_of(rows.begin(), rows.end(), covers) ? 1 : 0;
  }
  return static_cast<double>(dominated);
}

TEST(Pareto, HypervolumeMatchesCounting) {
  constexpr size_t kSide = 6;
  for (int64_t trial = 0; trial < 50; ++trial) {
    const size_t objectives = 1 + static_cast<size_t>(trial) % 5;
    const LossRows rows = random_rows(1 + static_cast<size_t>(trial) % 9, objectives, trial, kSide);
    const std::vector<double> reference(objectives, kSide);
    EXPECT_DOUBLE_EQ(hypervolume(rows, reference), counted_volume(rows, kSide, objectives));
  }
}

TEST(Pareto, SelectionTakesDuplicatesLastAndAllIfFewer) {
  const LossRows rows{{0, 1}, {0, 1}, {1, 0}, {0, 1}};
  EXPECT_EQ(select_by_hypervolume(rows, 3, {2, 2}), (std::vector<size_t>{0, 2, 1}));
  EXPECT_EQ(select_by_hypervolume(rows, 9, {2, 2}), (std::vector<size_t>{0, 2, 1, 3}));
  EXPECT_EQ(select_by_hypervolume(rows, 1, {kInfinity, 2}), (std::vector<size_t>{0}));
}

TEST(Pareto, CrowdingDistancesAreNeverNan) {
  const std::vector<double> distances =
      crowding_distances({{-1e308, 0}, {1e308, 1}, {0, 2}, {5e307, 3}});
  EXPECT_TRUE(std::none_of(distances.begin(), distances.end(),
                           [](double distance) { return std::isnan(distance); }));
  EXPECT_DOUBLE_EQ(distances[2], 0.75 + 2.0 / 3);
}

}  // namespace
}  // namespace gallop::tune
