#include "gallop/tune/samplers/quasi_random.h"

#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/tune/samplers/sobol.h"
#include "unit/fixtures.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

Space box(size_t size) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < size; ++i) parameters.push_back({"x" + std::to_string(i), Interval{}});
  return Space(std::move(parameters), {});
}

Point ask(const StudySettings& settings, int64_t number, bool scramble = true) {
  return make_quasi_random({.scramble = scramble}, settings)->ask(Study(settings), number)->point;
}

TEST(Sobol, MatchesSciPy) {
  std::ifstream file(fixtures() / "sobol.json");
  const auto points = nlohmann::json::parse(file);
  ASSERT_EQ(points.size(), 12);
  const Sobol sequence(Sobol::kMostDimensions);
  for (const auto& [index, point] : points.items()) {
    EXPECT_EQ(sequence.at(std::stoull(index)), point.get<std::vector<uint32_t>>()) << index;
  }
}

// In each interval of length 1 / 64, of each dimension, and in each square of area 1 / 64 of the
// first two, whatever its shape is.
TEST(Sobol, StaysEvenWhenScrambled) {
  constexpr uint64_t kPoints = 64;
  const Sobol sequence(20);
  std::vector<std::vector<uint32_t>> points;
  for (uint64_t index = 0; index < kPoints; ++index) {
    points.push_back(sequence.at(index));
    for (size_t i = 0; i < points.back().size(); ++i) {
      points.back()[i] = scrambled(points.back()[i], 5, i);
    }
  }
  for (size_t dimension = 0; dimension < 20; ++dimension) {
    std::set<uint32_t> cells;
    for (const auto& point : points) cells.insert(point[dimension] >> 26);
    EXPECT_EQ(cells.size(), kPoints);
  }
  for (uint32_t bits = 1; bits < 6; ++bits) {
    std::set<std::pair<uint32_t, uint32_t>> cells;
    for (const auto& point : points)
      cells.insert({point[0] >> (32 - bits), point[1] >> (26 + bits)});
    EXPECT_EQ(cells.size(), kPoints);
  }
}

TEST(Sobol, ScramblesToUniformPoints) {
  constexpr int kSeeds = 20'000;
  double sum = 0, squares = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const double x = scrambled(0, seed, 3) * 0x1p-32;
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kSeeds, 0.5, 0.01);  // Within five standard deviations.
  EXPECT_NEAR(squares / kSeeds, 1.0 / 3, 0.0106);
  std::set<uint32_t> halves;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    // Points with the same first digit stay together, the others move to the other half.
    const uint32_t low = scrambled(0, seed, 0) >> 31, also_low = scrambled(1u << 30, seed, 0) >> 31;
    EXPECT_EQ(low, also_low);
    EXPECT_NE(low, scrambled(1u << 31, seed, 0) >> 31);
    halves.insert(low);
  }
  EXPECT_EQ(halves.size(), 2);
}

TEST(QuasiRandomSampler, DependsOnlyOnSeedAndNumber) {
  StudySettings settings = TestStudy::settings_of(box(3));
  const Point fifth = ask(settings, 5);
  EXPECT_EQ(ask(settings, 5), fifth);
  EXPECT_NE(ask(settings, 6), fifth);
  settings.seed = 8;
  EXPECT_NE(ask(settings, 5), fifth);
  const Point plain = ask(settings, 1, /*scramble=*/false);
  for (const double x : plain) EXPECT_NEAR(x, 0.5, 1e-9);
}

TEST(QuasiRandomSampler, HasTheCorrectFrequencies) {
  const Space space({{"kind", Choices{{"1", "2", "3"}, {1, 0, 3}}},
                     {"steps", Interval{.low = 1, .high = 4, .step = 1, .integer = true}},
                     {"only", Interval{}, Condition{.parent = 0, .choices = {0}}}},
                    {});
  const StudySettings settings = TestStudy::settings_of(space);
  const auto sampler = make_quasi_random({}, settings);
  const Study study(settings);
  std::vector<int> kinds(3), steps(5);
  for (int64_t number = 0; number < 256; ++number) {
    const Point point = sampler->ask(study, number)->point;
    ASSERT_TRUE(space.contains(point));
    ++kinds[static_cast<size_t>(point[0])];
    ++steps[static_cast<size_t>(point[1])];
  }
  EXPECT_EQ(kinds, (std::vector<int>{64, 0, 192}));
  EXPECT_EQ(steps, (std::vector<int>{0, 64, 64, 64, 64}));
}

TEST(QuasiRandomSampler, SatisfiesConstraints) {
  const StudySettings settings =
      TestStudy::settings_of(Space({{"x", Interval{}}, {"y", Interval{}}}, {"x + y < 0.5"}));
  const auto sampler = make_quasi_random({}, settings);
  const Study study(settings);
  std::set<Point> seen;
  for (const int64_t number : {0, 1, 2, 7, 3, 40}) {
    const Point point = sampler->ask(study, number)->point;
    EXPECT_TRUE(settings.space.allows(point));
    EXPECT_TRUE(seen.insert(point).second);
    EXPECT_EQ(ask(settings, number), point);
  }
  const StudySettings none = TestStudy::settings_of(Space({{"x", Interval{}}}, {"x > 2"}));
  EXPECT_THROW(ask(none, 0), UsageError);
}

TEST(QuasiRandomSampler, RejectsTooManyParameters) {
  EXPECT_EQ(ask(TestStudy::settings_of(box(128)), 3).size(), 128);
  EXPECT_THROW(ask(TestStudy::settings_of(box(129)), 3), UsageError);
}

}  // namespace
}  // namespace gallop::tune
