#include "gallop/tune/importance/importance.h"

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/tune/importance/forest.h"
#include "gallop/tune/sampler.h"
#include "test_study.h"
#include "unit/fixtures.h"

namespace gallop::tune {
namespace {

using Json = nlohmann::json;
using Vector = std::vector<double>;

void complete(TestStudy& test, Point point, Vector losses) {
  test.end(test.start(std::move(point)), TrialState::kComplete, std::move(losses));
}

TestStudy stored_study(const Json& stored) {
  const Json& losses = stored.at("losses");
  TestStudy test(Space::from_json(stored.at("space").dump()), losses[0].size(), 0);
  for (size_t i = 0; i < losses.size(); ++i) {
    Point point;
    for (size_t j = 0; j < test.study.space().size(); ++j) {
      const Json& value = stored.at("points")[i][j];
      const auto text = test.study.space()[j].choices() != nullptr && value.is_number()
                            ? test.study.space().value_text(j, value)
                            : value.dump();
      point.push_back(value.is_null() ? kInactive
                                      : test.study.space().parse_value(j, text).value());
    }
    complete(test, std::move(point), losses[i]);
  }
  return test;
}

const Json& fixture() {
  static const Json stored = Json::parse(std::ifstream(fixtures() / "importance.json"));
  return stored.at("studies");
}

TEST(PedAnova, AgreesWithOptuna) {
  ASSERT_EQ(fixture().size(), 5u);
  for (const Json& stored : fixture()) {
    const TestStudy test = stored_study(stored);
    for (const Json& expected : stored.at("ped_anova")) {
      const Vector shares = ped_anova(test.study, {.target = expected.value("target", 0.1),
                                                   .region = expected.value("region", 1.0),
                                                   .local = expected.value("local", true)});
      const Vector wanted = expected.at("shares");
      ASSERT_EQ(shares.size(), wanted.size());
      for (size_t i = 0; i < shares.size(); ++i) {
        EXPECT_NEAR(shares[i], wanted[i], 1e-9)
            << stored.at("name") << ' ' << test.study.space()[i].name;
      }
    }
  }
}

TEST(PedAnova, SelectsOneOfSeveralObjectives) {
  TestStudy test(Space({{"x", Interval{}}, {"y", Interval{}}}, {}), 2, 0);
  for (int64_t trial = 0; trial < 200; ++trial) {
    Random random(1, trial);
    const Point point = random_point(test.study.space(), random);
    complete(test, point, {point[0], point[1]});
  }
  EXPECT_GT(ped_anova(test.study, {.objective = 0})[0], 0.9);
  EXPECT_GT(ped_anova(test.study, {.objective = 1})[1], 0.9);
  // For both objectives together, both parameters matter.
  EXPECT_GT(ped_anova(test.study)[0], 0.1);
  EXPECT_GT(ped_anova(test.study)[1], 0.1);
  EXPECT_THROW(ped_anova(test.study, {.objective = 2}), UsageError);
  EXPECT_THROW(ped_anova(test.study, {.target = 0.5, .region = 0.5}), UsageError);
}

TEST(Fanova, AgreesWithOptunaForNumericalParameters) {
  int compared = 0;
  for (const Json& stored : fixture()) {
    if (!stored.contains("fanova")) continue;
    const TestStudy test = stored_study(stored);
    const Vector shares = fanova(test.study);
    for (size_t i = 0; i < shares.size(); ++i) {
      const double mean = stored.at("fanova").at("means")[i];
      const double deviation = stored.at("fanova").at("deviations")[i];
      EXPECT_NEAR(shares[i], mean, 4 * deviation) << stored.at("name") << ' ' << i;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 12);
}

/// Shares of a study of random points.
Vector shares_of(const Space& space, int64_t trials, const std::function<double(const Point&)>& f) {
  TestStudy test(space, 1, 0);
  for (int64_t trial = 0; trial < trials; ++trial) {
    Random random(3, trial);
    const Point point = random_point(space, random);
    complete(test, point, {f(point)});
  }
  return fanova(test.study);
}

TEST(Fanova, ApproximatesTheVariances) {
  // The variances of 3 u, 2 v and w with u, v, w uniform are 9 : 4 : 1.
  const Space numbers({{"u", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}},
                       {"v", Interval{.low = 0, .high = 20, .step = 1, .integer = true}},
                       {"w", Interval{}},
                       {"nothing", Interval{}},
                       {"fixed", Interval{.low = 2, .high = 2}}},
                      {});
  const Vector shares = shares_of(numbers, 1000, [](const Point& x) {
    return 3 * (std::log10(x[0]) / 4 + 1) + 2 * x[1] / 20 + x[2];
  });
  EXPECT_NEAR(shares[0], 9.0 / 14, 0.03);
  EXPECT_NEAR(shares[1], 4.0 / 14, 0.03);
  EXPECT_NEAR(shares[2], 1.0 / 14, 0.03);
  EXPECT_LT(shares[3], 0.01);
  EXPECT_EQ(shares[4], 0);
}

TEST(Fanova, WeightsChoicesByTheirProbability) {
  // Variances: 0.9 * 0.1 * 10^2 = 9, and 3^2 / 4 = 2.25.
  const Space space({{"rare", Choices{{"0", "1", "2"}, {4, 1, 5}}}, {"even", Choices{{"0", "1"}}}},
                    {});
  const Vector shares =
      shares_of(space, 400, [](const Point& x) { return (x[0] == 1 ? 10.0 : 0.0) + 3 * x[1]; });
  EXPECT_NEAR(shares[0], 9 / 11.25, 0.03);
  EXPECT_NEAR(shares[1], 2.25 / 11.25, 0.03);
}

TEST(Fanova, HandlesInactiveParameters) {
  const Space space({{"kind", Choices{{"1", "2"}}},
                     {"only", Interval{}, Condition{0, {1}}},
                     {"other", Interval{}, Condition{0, {0}}},
                     {"idle", Interval{}, Condition{0, {0}}}},
                    {});
  const Vector shares = shares_of(
      space, 600, [](const Point& x) { return x[0] == 1 ? 4 * x[1] : 2 + 0.5 * (x[2] - 0.5); });
  // Averaged over kinds it is 2 x[1] with a variance of 1/3; the kind has none by itself.
  EXPECT_GT(shares[1], 0.9);
  EXPECT_LT(shares[3], 0.01);
}

TEST(Importance, IsEqualWithoutInformation) {
  TestStudy test(Space({{"x", Interval{}}, {"y", Interval{}}}, {}), 1, 0);
  const Vector equal{0.5, 0.5};
  EXPECT_EQ(ped_anova(test.study), equal);
  EXPECT_EQ(fanova(test.study), equal);
  for (int i = 0; i < 20; ++i) {
    complete(test, {i / 20.0, 0.5}, {i % 2 == 0 ? NAN : std::numeric_limits<double>::infinity()});
  }
  EXPECT_EQ(ped_anova(test.study), equal);
  EXPECT_EQ(fanova(test.study), equal);
  for (int i = 0; i < 20; ++i) complete(test, {i / 20.0, 0.5}, {1});
  EXPECT_EQ(fanova(test.study), equal);
  EXPECT_THROW(fanova(test.study, {.trees = 0}), UsageError);
  EXPECT_THROW(fanova(test.study, {.objective = 1}), UsageError);
}

TEST(Importance, ReportsWhyItIsUnknown) {
  TestStudy test(Space({{"x", Interval{}}, {"y", Interval{}}}, {}), 2, 0);
  complete(test, {0.25, 0.5}, {1, 2});
  EXPECT_EQ(no_importance_reason(test.study, 0), "at least two complete trials are required");
  complete(test, {0.75, 0.5}, {1, 2});
  EXPECT_EQ(no_importance_reason(test.study, {}),
            "all 2 complete trials have the same loss and loss; no parameter is important");
  complete(test, {0.5, 0.5}, {1, 3});
  EXPECT_EQ(no_importance_reason(test.study, 0),
            "all 3 complete trials have the same loss; no parameter is important");
  EXPECT_EQ(no_importance_reason(test.study, 1), "");
  EXPECT_EQ(no_importance_reason(test.study, {}), "");
}

TEST(RegressionTree, LeavesPartitionTheSpace) {
  const Samples samples{.categories = {{}, {0.25, 0.5, 0.25}, {}},
                        .points = {{0.1, 0, 0.2}, {0.7, 2, 0.9}, {0.4, 1, 0.4}, {0.9, 1, 0.6}},
                        .values = {1, 2, 3, 4}};
  for (int64_t tree = 0; tree < 20; ++tree) {
    Random random(1, tree);
    double size = 0;
    for (const Leaf& leaf : grown_tree(samples, 64, random)) {
      double part = 1;
      for (size_t i = 0; i < 3; ++i) part *= size_of(leaf.sides[i], samples.categories[i]);
      size += part;
      EXPECT_EQ(leaf.value, std::round(leaf.value));  // One of the values.
    }
    EXPECT_NEAR(size, 1, 1e-12);
  }
}

}  // namespace
}  // namespace gallop::tune
