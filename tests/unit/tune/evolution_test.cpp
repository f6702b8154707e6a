#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <set>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/samplers/cma_es.h"
#include "gallop/tune/samplers/nsga2.h"
#include "test_study.h"

namespace gallop::tune {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Make = std::function<std::unique_ptr<Sampler>(const StudySettings&)>;
using Losses = std::function<std::vector<double>(const Point&)>;

Make cma_es(const CmaEsConfig& config = {}) {
  return [=](const StudySettings& settings) { return make_cma_es(config, settings); };
}

Make nsga2(const Nsga2Config& config = {}) {
  return [=](const StudySettings& settings) { return make_nsga2(config, settings); };
}

/// Numbers with and without steps, choices, conditions and a constraint.
Space mixed_space() {
  return Space({{"rate", Interval{.low = 1e-5, .high = 1, .scale = Scale::kLog}},
                {"layers", Interval{.low = 1, .high = 6, .step = 1, .integer = true}},
                {"kind", Choices{{R"("a")", R"("b")", R"("c")"}, {1, 2, 1}}},
                {"only_b", Interval{.low = -1, .high = 1}, Condition{2, {1}}},
                {"deep", Choices{{"1", "2"}}, Condition{2, {1, 2}}},
                {"deeper", Interval{.low = 0, .high = 1, .step = 0.25}, Condition{4, {1}}},
                {"normal", Interval{.low = -4, .high = 4, .scale = Scale::kNormal}},
                {"fixed", Interval{.low = 3, .high = 3}}},
               {"layers * rate < 2.5", "normal < 3"});
}

double mixed_loss(const Point& x) {
  double sum = std::abs(std::log10(x[0]) + 2) + 0.3 * std::abs(x[1] - 4) + 0.1 * x[6] * x[6];
  if (x[2] == 1) sum += x[3] * x[3] - 0.5;
  if (!std::isnan(x[5])) sum -= x[5];
  return sum;
}

Space box(size_t size, double low = 0, double high = 1) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < size; ++i) {
    parameters.push_back({"x" + std::to_string(i), Interval{.low = low, .high = high}});
  }
  return Space(std::move(parameters), {});
}

double sphere(const Point& x) {
  double sum = 0;
  for (const double at : x) sum += (at - 0.3) * (at - 0.3);
  return sum;
}

struct Plan {
  int64_t trials = 200;
  size_t workers = 1;
  double failing = 0, pruned = 0;  // Fractions of the trials.
  /// A new sampler, created after every n trials, must propose the same; 0: never.
  int64_t check_every = 0;
};

/// Trials end in any order.
TestStudy play(const Plan& plan, const Make& make, TestStudy test, const Losses& losses) {
  const auto sampler = make(test.study.settings());
  std::vector<int64_t> running;
  Random random(5, 0, 77);
  const auto end_one = [&] {
    const size_t place = random.below(running.size());
    const int64_t number = running[place];
    running.erase(running.begin() + static_cast<std::ptrdiff_t>(place));
    const double fate = random.uniform();
    if (fate < plan.failing) return test.end(number, TrialState::kFailed, {});
    const auto values = losses(test.study.trials()[static_cast<size_t>(number)].point);
    if (fate < plan.failing + plan.pruned) {
      test.report(number, 1, values[0]);
      return test.end(number, TrialState::kPruned, {});
    }
    test.end(number, TrialState::kComplete, values);
  };
  for (int64_t number = 0; number < plan.trials; ++number) {
    if (running.size() == plan.workers) end_one();
    const Point point = sampler->ask(test.study, number).value().point;
    EXPECT_TRUE(test.study.space().contains(point)) << number;
    EXPECT_TRUE(test.study.space().allows(point)) << number;
    if (plan.check_every > 0 && number % plan.check_every == 0) {
      const auto other = make(test.study.settings())->ask(test.study, number).value();
      EXPECT_TRUE(is_same_point(point, other.point)) << number;
    }
    running.push_back(test.start(point));
  }
  while (!running.empty()) end_one();
  return test;
}

double best_loss(const TestStudy& test) {
  return test.study.trials()[static_cast<size_t>(test.study.best().value())].losses[0];
}

struct NamedSampler {
  const char* name;
  Make make;
};

void PrintTo(const NamedSampler& sampler, std::ostream* out) { *out << sampler.name; }

class EverySampler : public testing::TestWithParam<NamedSampler> {};

TEST_P(EverySampler, IsDeterministicAcrossRestarts) {
  const Plan plan{.trials = 150, .workers = 5, .failing = 0.1, .pruned = 0.1, .check_every = 6};
  const auto played = play(plan, GetParam().make, TestStudy(mixed_space(), 1, 0),
                           [](const Point& x) { return std::vector{mixed_loss(x)}; });
  EXPECT_EQ(played.study.trials().size(), 150u);
}

TEST_P(EverySampler, OutperformsRandomSearch) {
  const auto loss = [](const Point& x) { return std::vector{mixed_loss(x)}; };
  const Make random = [](const StudySettings& settings) {
    return built_in_samplers().build({built_in_samplers(), "random"}, settings);
  };
  double ours = 0, theirs = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    StudySettings settings = TestStudy::settings_of(mixed_space());
    settings.seed = seed;
    ours += best_loss(play({}, GetParam().make, TestStudy(settings), loss));
    theirs += best_loss(play({}, random, TestStudy(settings), loss));
  }
  EXPECT_LT(ours, theirs);
}

TEST_P(EverySampler, ContinuesAfterNonFiniteLosses) {
  const auto losses = [](const Point& x) -> std::vector<double> {
    if (x[0] > 0.7) return {NAN};
    if (x[1] > 0.7) return {kInfinity};
    if (x[0] < 0.05) return {-kInfinity};
    return {sphere(x)};
  };
  play({.trials = 300, .workers = 3, .check_every = 25}, GetParam().make, TestStudy(box(2), 1, 0),
       losses);
  const auto worst = [](const Point&) { return std::vector<double>{NAN}; };
  play({.trials = 200}, GetParam().make, TestStudy(mixed_space(), 1, 0), worst);
}

TEST_P(EverySampler, ReplaysIfAFinishedTrialRunsAgain) {
  TestStudy test(box(2), 1, 0);
  const auto sampler = GetParam().make(test.study.settings());
  const auto ask = [&](Sampler& asked) {
    return asked.ask(test.study, static_cast<int64_t>(test.study.trials().size()))->point;
  };
  for (int i = 0; i < 120; ++i) {
    const Point point = ask(*sampler);
    test.complete(test.start(point), sphere(point));
  }
  test.queue_again(60);
  EXPECT_EQ(ask(*sampler), ask(*GetParam().make(test.study.settings())));
  test.run(60);
  test.complete(60, 100);
  EXPECT_EQ(ask(*sampler), ask(*GetParam().make(test.study.settings())));
}

TEST_P(EverySampler, LearnsFromAllBrackets) {
  TestStudy test(box(2), 1, 0), same(box(2), 1, 0);
  const auto sampler = GetParam().make(test.study.settings());
  const auto other = GetParam().make(same.study.settings());
  for (int64_t number = 0; number < 60; ++number) {
    const Point point = sampler->ask(test.study, number)->point;
    ASSERT_EQ(other->ask(same.study, number)->point, point);
    test.complete(test.start(point), sphere(point));
    same.complete(same.start(point, static_cast<int32_t>(number % 3)), sphere(point));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Evolution, EverySampler,
    testing::Values(
        NamedSampler{"CmaEs", cma_es()},
        NamedSampler{
            "CmaEsOfMany",
            cma_es({.population = 20, .startup = 10, .restarts = "bipop", .pruned = true})},
        NamedSampler{"CmaEsAdaptingRates", cma_es({.adapt_rates = true})},
        NamedSampler{"Nsga2", nsga2({.population = 20})},
        NamedSampler{"Nsga2Blx", nsga2({.population = 20, .crossover = "blx"})},
        NamedSampler{"Nsga2Sbx", nsga2({.population = 20, .crossover = "sbx"})}),
    [](const auto& member) { return member.param.name; });

TEST(CmaEs, FindsAMinimumExactlyAndThenElsewhere) {
  const auto losses = [](const Point& x) { return std::vector{sphere(x)}; };
  for (const char* const restarts : {"none", "ipop", "bipop"}) {
    const Plan plan{.trials = 1500, .check_every = 500};
    const auto played = play(plan, cma_es({.restarts = restarts}), TestStudy(box(2), 1, 0), losses);
    EXPECT_LT(best_loss(played), 1e-12);
    double most = 0;  // The largest of the last 500.
    for (size_t i = 1000; i < 1500; ++i) {
      most = std::max(most, sphere(played.study.trials()[i].point));
    }
    EXPECT_EQ(most > 0.01, std::string(restarts) != "none") << restarts;
  }
}

TEST(CmaEs, KeepsSamplingTheNeighborsOfAnInteger) {
  const Space space({{"x", Interval{.low = -5, .high = 5}},
                     {"n", Interval{.low = 0, .high = 1, .step = 1, .integer = true}},
                     {"m", Interval{.low = -10, .high = 10, .step = 1, .integer = true}}},
                    {});
  const auto losses = [](const Point& x) {
    return std::vector{x[0] * x[0] + x[1] + std::abs(x[2] - 3)};
  };
  const auto played =
      play({.trials = 400}, cma_es({.restarts = "none"}), TestStudy(space, 1, 0), losses);
  EXPECT_LT(best_loss(played), 1e-6);
  int others = 0;
  std::set<double> values;
  for (size_t i = 300; i < 400; ++i) {
    others += played.study.trials()[i].point[1] == 1 ? 1 : 0;
    values.insert(played.study.trials()[i].point[2]);
  }
  EXPECT_GT(others, 0);  // At least one in as many as a generation has, times three, on average.
  EXPECT_LT(others, 30);
  EXPECT_GE(values.size(), 2u);
}

TEST(CmaEs, LearnsGoodChoicesUnlessTheyAreRandom) {
  const Space space({{"x", Interval{.low = 0, .high = 1}},
                     {"y", Interval{.low = 0, .high = 1}},
                     {"kind", Choices{{"1", "2", "3", "4"}}},
                     {"only_3", Interval{.low = 0, .high = 1}, Condition{2, {2}}}},
                    {});
  const auto losses = [](const Point& x) {
    return std::vector{std::abs(x[0] - 0.3) + x[1] + (x[2] == 2 ? 0.2 * x[3] : 1)};
  };
  std::vector<int> good;
  for (const char* const independent : {"tpe", "random"}) {
    const auto played = play({.trials = 150, .workers = 3, .check_every = 50},
                             cma_es({.independent = independent}), TestStudy(space, 1, 0), losses);
    good.push_back(0);
    for (size_t i = 100; i < 150; ++i) {
      const Point& point = played.study.trials()[i].point;
      good.back() += point[2] == 2 && point[3] < 0.5 ? 1 : 0;
    }
  }
  EXPECT_GT(good[0], 35);
  EXPECT_LT(good[1], 15);
}

TEST(CmaEs, UsesQueuedPoints) {
  TestStudy test(box(2), 1, 0);
  const auto sampler = make_cma_es({.startup = 1}, test.study.settings());
  test.complete(test.start({0.9, 0.1}), 1);
  test.complete(test.start({0.1, 0.1}), 2);
  // The first finished trial is the start; the second is clipped to its vicinity.
  double sum = 0;
  for (int64_t number = 2; number < 102; ++number) {
    sum += sampler->ask(test.study, number)->point[0] / 100;
  }
  EXPECT_NEAR(sum, 0.85, 0.06);  // Less than 0.9 as it ends at 1.
}

TEST(CmaEs, LearnsFromLateTrials) {
  const auto losses = [](const Point& x) { return std::vector{sphere(x)}; };
  double one = 0, many = 0;  // Logarithms.
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    StudySettings settings = TestStudy::settings_of(box(4));
    settings.seed = seed;
    one += std::log(best_loss(play({.trials = 150}, cma_es(), TestStudy(settings), losses)));
    many += std::log(
        best_loss(play({.trials = 150, .workers = 8}, cma_es(), TestStudy(settings), losses)));
  }
  EXPECT_LT(many / 10, one / 10 + 1.5);  // More than 2 without them.
}

TEST(CmaEs, PrefersTrialsWithinTheLimits) {
  TestStudy test(box(2), 1, 1);
  const auto sampler = make_cma_es({}, test.study.settings());
  for (int64_t number = 0; number < 200; ++number) {
    const Point point = sampler->ask(test.study, number)->point;
    test.end(test.start(point), TrialState::kComplete, {sphere(point)}, {0.5 - point[0]});
  }
  const Trial& best = test.study.trials()[static_cast<size_t>(test.study.best().value())];
  EXPECT_NEAR(best.point[0], 0.5, 0.02);
  EXPECT_NEAR(best.point[1], 0.3, 0.05);
}

TEST(CmaEs, RejectsUnsupportedSpaces) {
  StudySettings settings = TestStudy::settings_of(box(1));
  EXPECT_THROW(make_cma_es({.population = 1}, settings), UsageError);
  settings.objectives.push_back({"second"});
  EXPECT_THROW(make_cma_es({}, settings), UsageError);
  const Space choices({{"kind", Choices{{"1", "2"}}}, {"x", Interval{}, Condition{0, {1}}}}, {});
  EXPECT_THROW(make_cma_es({}, TestStudy::settings_of(choices)), UsageError);
}

/// The first of the problems of Zitzler, Deb and Thiele ("Comparison of multiobjective evolutionary
/// algorithms", 2000).
std::vector<double> zdt1(const Point& x) {
  double sum = 0;
  for (size_t i = 1; i < x.size(); ++i) sum += x[i];
  const double g = 1 + 9 * sum / static_cast<double>(x.size() - 1);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}

double volume_of(const TestStudy& test) {
  LossRows front;
  for (const int64_t number : test.study.pareto_front()) {
    front.push_back(test.study.trials()[static_cast<size_t>(number)].losses);
  }
  return hypervolume(front, {1.1, 11});
}

TEST(Nsga2, ApproachesAFront) {
  const Plan plan{.trials = 600, .workers = 4, .check_every = 100};
  for (const char* const crossover : {"uniform", "blx", "sbx"}) {
    const auto played = play(plan, nsga2({.population = 20, .crossover = crossover}),
                             TestStudy(box(5), 2, 0), zdt1);
    // At most 11.76; random points reach about 10.1.
    EXPECT_GT(volume_of(played), 11) << crossover;
  }
}

TEST(Nsga2, StaysWithinTheLimits) {
  TestStudy test(box(5), 2, 1);
  const auto sampler = make_nsga2({.population = 20}, test.study.settings());
  for (int64_t number = 0; number < 300; ++number) {
    const Point point = sampler->ask(test.study, number)->point;
    test.end(test.start(point), TrialState::kComplete, zdt1(point), {0.6 - point[0]});
  }
  int feasible = 0;
  for (size_t i = 200; i < 300; ++i) feasible += is_feasible(test.study.trials()[i]) ? 1 : 0;
  EXPECT_GT(feasible, 80);
}

TEST(Nsga2, DoesNotRepeatParents) {
  const Space space({{"a", Choices{{"1", "2", "3", "4"}}},
                     {"b", Choices{{"1", "2", "3", "4"}}},
                     {"c", Choices{{"1", "2", "3", "4"}}}},
                    {});
  const auto losses = [](const Point& x) { return std::vector{x[0] + x[1] + x[2]}; };
  const auto played =
      play({.trials = 40}, nsga2({.population = 10}), TestStudy(space, 1, 0), losses);
  std::set<Point> points;
  for (size_t i = 10; i < 20; ++i) points.insert(played.study.trials()[i].point);
  for (size_t i = 0; i < 10; ++i) points.erase(played.study.trials()[i].point);
  EXPECT_EQ(points.size(), 10u);
}

TEST(Nsga2, DoesNotRepeatTrialsThatHaveNotEnded) {
  const Space space({{"a", Choices{{"1", "2", "3", "4"}}}, {"b", Choices{{"1", "2", "3", "4"}}}},
                    {});
  TestStudy test(space, 1, 0);
  const auto sampler =
      make_nsga2({.population = 4, .mutation_probability = 1}, test.study.settings());
  std::set<Point> points;
  for (const double both : {0.0, 1.0, 2.0, 3.0}) {
    const Point point{both, both};
    points.insert(point);
    test.complete(test.start(point), both);
  }
  for (int64_t number = 4; number < 15; ++number) {  // 11 of the 12 other points.
    const Point point = sampler->ask(test.study, number)->point;
    EXPECT_TRUE(points.insert(point).second) << number;
    test.start(point);
    if (number % 2 == 0) test.queue_again(number);
  }
}

}  // namespace
}  // namespace gallop::tune
