#include "gallop/tune/samplers/tpe.h"

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "gallop/tune/samplers/parzen.h"
#include "gallop/tune/samplers/quasi_random.h"
#include "gallop/tune/samplers/sobol.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Space plane() {
  return Space({{"x", Interval{.low = -5, .high = 5}}, {"y", Interval{.low = -5, .high = 5}}}, {});
}

/// With parameters of all kinds, of which some are there only with others.
Space nested() {
  return Space(
      {{"kind", Choices{{"0", "1", "2"}, {1, 0, 2}}},
       {"rate", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}},
       {"width", Interval{.low = 4, .high = 64, .scale = Scale::kLog, .step = 1, .integer = true},
        Condition{0, {2}}},
       {"drop", Interval{.low = 0, .high = 0.6, .step = 0.05}, Condition{0, {2}}},
       {"norm", Choices{{"false", "true"}}, Condition{0, {0}}},
       {"scale", Interval{.low = -3, .high = 3, .scale = Scale::kNormal}, Condition{4, {1}}},
       {"fixed", Interval{.low = 3, .high = 3, .step = 1, .integer = true}},
       {"depth", Interval{.low = 1, .high = 8, .step = 1, .integer = true}}},
      {"width * depth <= 128", "rate < 0.5 or depth > 2"});
}

double loss_at(const Point& point) {
  double sum = 0;
  for (const double value : point) sum += std::isnan(value) ? 1 : (value - 0.3) * (value - 0.3);
  return sum;
}

StudySettings settings_of(const Space& space, size_t objectives = 1, size_t limits = 0) {
  return TestStudy::settings_of(space, objectives, limits);
}

Point ask(Sampler& sampler, const Study& study) {
  return sampler.ask(study, static_cast<int64_t>(study.trials().size()))->point;
}

Point ask_anew(const Study& study, const TpeConfig& config = {}) {
  return ask(*make_tpe(config, study.settings()), study);
}

bool are_same(const Point& a, const Point& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
  }
  return true;
}

/// Ends a running trial in one of many ways, and restarts some.
void end_somehow(TestStudy& test, int64_t trial, Random& random) {
  const double loss = loss_at(test.study.trials()[static_cast<size_t>(trial)].point);
  const std::vector<double> violations = {random.uniform(-1, 0.3)};
  switch (random.below(8)) {
    case 0: return test.end(trial, TrialState::kFailed, {});
    case 1: return test.end(trial, TrialState::kPruned, {}, violations);
    case 2:
      test.report(trial, 3, random.below(3) == 0 ? kNan : loss);
      return test.end(trial, TrialState::kPruned, {}, violations);
    case 3:
      test.report(trial, 1, loss);
      test.end(trial, TrialState::kPruned, {}, violations);
      return test.queue_again(trial);
    case 4: return test.end(trial, TrialState::kComplete, {kNan}, violations);
    default: return test.end(trial, TrialState::kComplete, {loss}, violations);
  }
}

// Workers come and go, trials end in all ways and begin again, and at each ask a sampler that has
// seen nothing answers as the one that has seen all.
TEST(TpeSampler, IsDeterministicAcrossRestarts) {
  for (const char* const densities : {"grouped", "joint", "independent"}) {
    SCOPED_TRACE(densities);
    const TpeConfig config{.densities = densities};
    TestStudy test(settings_of(nested(), 1, 1));
    const auto sampler = make_tpe(config, test.study.settings());
    Random random(1, 2);
    for (int i = 0; i < 150; ++i) {
      const Point point = ask(*sampler, test.study);
      ASSERT_TRUE(test.study.space().contains(point));
      ASSERT_TRUE(test.study.space().allows(point));
      EXPECT_NE(point[0], 1);  // Its weight is 0.
      const Study copy = test.study;
      ASSERT_TRUE(are_same(ask_anew(copy, config), point)) << "trial " << i;
      test.start(point);
      for (const int64_t trial : std::set<int64_t>(test.study.waiting())) {
        if (random.below(2) == 0) test.run(trial);
      }
      for (const int64_t trial : std::set<int64_t>(test.study.running())) {
        if (random.below(4) == 0) end_somehow(test, trial, random);
      }
    }
  }
}

TEST(TpeSampler, IsDeterministicAcrossRestartsWithTenThousandTrials) {
  TestStudy test(settings_of(nested()));
  for (int64_t number = 0; number < 10'000; ++number) {
    Random random(2, number);
    const Point point = random_point(test.study.space(), random);
    test.complete(test.start(point), loss_at(point));
  }
  const auto sampler = make_tpe({}, test.study.settings());
  for (int i = 0; i < 20; ++i) {
    const Point point = ask(*sampler, test.study);
    ASSERT_TRUE(test.study.space().contains(point));
    ASSERT_TRUE(test.study.space().allows(point));
    if (i % 7 == 0) {
      const Study copy = test.study;
      ASSERT_TRUE(are_same(ask_anew(copy), point));
    }
    test.complete(test.start(point), loss_at(point));
  }
}

void tell_at_random(TestStudy& test, int count) {
  for (int number = 0; number < count; ++number) {
    Random random(1, number);
    const Point point = random_point(test.study.space(), random);
    test.end(test.start(point), TrialState::kComplete,
             std::vector<double>(test.study.objectives(), loss_at(point)));
  }
}

/// How many of `count` further points are in the square around 0.3 with sides of 1.
int count_near(TestStudy& test, int count, const std::function<double(const Point&)>& loss) {
  const auto sampler = make_tpe({}, test.study.settings());
  int near = 0;
  for (int i = 0; i < count; ++i) {
    const Point point = ask(*sampler, test.study);
    near += std::abs(point[0] - 0.3) < 0.5 && std::abs(point[1] - 0.3) < 0.5 ? 1 : 0;
    test.complete(test.start(point), loss(point));
  }
  return near;
}

TEST(TpeSampler, ReturnsToGoodRegions) {
  TestStudy test(settings_of(plane()));
  count_near(test, 60, loss_at);
  EXPECT_GE(count_near(test, 100, loss_at), 15);  // At random, one.
}

TEST(TpeSampler, HandlesNonFiniteLosses) {
  const auto loss = [](const Point& point) {
    if (point[0] < -2) return kNan;
    if (point[1] < -2) return kInfinity;
    if (point[1] > 4) return -kInfinity;
    return loss_at(point);
  };
  int numbers = 0, best = 0;
  StudySettings settings = settings_of(plane());
  for (settings.seed = 0; settings.seed < 10; ++settings.seed) {
    TestStudy test(settings);
    const auto sampler = make_tpe({}, settings);
    for (int i = 0; i < 100; ++i) {
      const Point point = ask(*sampler, test.study);
      ASSERT_TRUE(test.study.space().contains(point));
      numbers += i >= 50 && point[0] > -2 && point[1] > -2 ? 1 : 0;
      best += i >= 50 && point[1] > 4 ? 1 : 0;
      test.complete(test.start(point), loss(point));
    }
  }
  // The counts are out of 500; at random 245 and 50.
  EXPECT_GE(numbers, 425);
  EXPECT_GE(best, 300);
}

TEST(TpeSampler, AvoidsRunningTrials) {
  TestStudy test(settings_of(plane()));
  tell_at_random(test, 60);
  const Point best = test.study.trials()[static_cast<size_t>(*test.study.best())].point;
  for (int i = 0; i < 20; ++i) test.start(best);
  const auto count_beside = [&](bool count_running) {
    const auto sampler = make_tpe({.count_running = count_running}, test.study.settings());
    int beside = 0;
    for (int64_t number = 80; number < 180; ++number) {
      const Point point = sampler->ask(test.study, number)->point;
      beside += std::hypot(point[0] - best[0], point[1] - best[1]) < 0.3 ? 1 : 0;
    }
    return beside;
  };
  const int without = count_beside(false);
  EXPECT_GE(without, 5);
  EXPECT_LT(count_beside(true), without / 3);
}

TEST(TpeSampler, LearnsFromAllBrackets) {
  TestStudy test(settings_of(plane())), same(settings_of(plane()));
  tell_at_random(test, 40);
  for (int32_t number = 0; number < 40; ++number) {
    const Point& point = test.study.trials()[static_cast<size_t>(number)].point;
    same.complete(same.start(point, number % 3), loss_at(point));
  }
  EXPECT_EQ(ask_anew(same.study), ask_anew(test.study));
}

TEST(TpeSampler, StartsWithQuasiRandomPoints) {
  TestStudy test(settings_of(plane()));
  const auto sampler = make_quasi_random({}, test.study.settings());
  const auto quasi_random = [&] { return ask(*sampler, test.study); };
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(ask_anew(test.study, {.startup = 4}), quasi_random());
    test.start(quasi_random());  // Running trials do not count.
  }
  EXPECT_EQ(ask_anew(test.study, {.startup = 4}), quasi_random());
  for (int i = 0; i < 4; ++i) test.complete(i, i);
  EXPECT_NE(ask_anew(test.study, {.startup = 4}), quasi_random());
}

TEST(TpeSampler, StartsAtRandomWithSeveralObjectivesOrTooManyParameters) {
  const StudySettings settings = settings_of(plane(), 2);
  Random of_plane(settings.seed, 0);
  EXPECT_EQ(ask_anew(Study(settings)), random_point(plane(), of_plane));

  std::vector<Parameter> parameters;
  for (size_t i = 0; i <= Sobol::kMostDimensions; ++i) {
    parameters.push_back({"x" + std::to_string(i), Interval{}});
  }
  const Space space(std::move(parameters), {});
  Random random(TestStudy::settings_of(space).seed, 0);
  EXPECT_EQ(ask_anew(Study(settings_of(space))), random_point(space, random));
}

TEST(TpeSampler, NarrowsGoodDensitiesForOneObjectiveWithoutConditions) {
  const auto is_narrower = [](const Space& space, size_t objectives) {
    TestStudy test(settings_of(space, objectives));
    tell_at_random(test, 40);
    return !are_same(ask_anew(test.study, {.narrowing = 1}),
                     ask_anew(test.study, {.narrowing = 4}));
  };
  EXPECT_TRUE(is_narrower(plane(), 1));
  EXPECT_FALSE(is_narrower(plane(), 2));
  const Space branches({{"kind", Choices{{"0", "1"}}},
                        {"x", Interval{}, Condition{0, {0}}},
                        {"y", Interval{}, Condition{0, {1}}}},
                       {});
  EXPECT_FALSE(is_narrower(branches, 1));
}

TEST(TpeSampler, NarrowsLessTheMoreTrialsRun) {
  TestStudy test(settings_of(plane()));
  tell_at_random(test, 40);
  for (int i = 0; i < 3; ++i) test.start({5, 5});
  const auto with = [&](double narrowing) {
    return ask_anew(test.study, {.narrowing = narrowing, .count_running = false});
  };
  const Point at_three = with(9);  // By the factor 1 + 8 / 4.
  for (int i = 0; i < 3; ++i) test.end(40 + i, TrialState::kFailed, {});
  const auto number = static_cast<int64_t>(test.study.trials().size());
  const auto sampler = make_tpe({.narrowing = 3}, test.study.settings());
  EXPECT_EQ(at_three, sampler->ask(test.study, number)->point);
  EXPECT_NE(at_three, with(9));
}

TEST(ParzenEstimator, NarrowsAndWidensAgain) {
  ParzenEstimator estimator(plane(), {0}, ParzenEstimator::Weights::kFading);
  for (int64_t trial = 0; trial < 8; ++trial) {
    estimator.insert(trial, {static_cast<double>(trial) / 8, 0});
  }
  const auto widths = [&] {
    std::vector<double> found;
    for (size_t i = 0; i <= estimator.size(); ++i) found.push_back(estimator.kernel(i)[0][1]);
    return found;
  };
  const auto wide = widths();
  EXPECT_EQ(wide, (std::vector<double>{1, 1, 1, 1, 1, 1, 1, 1, 10}));  // A tenth of the interval.
  estimator.set_narrowing(4);
  EXPECT_EQ(widths(), (std::vector<double>{.25, .25, .25, .25, .25, .25, .25, .25, 10}));
  estimator.set_narrowing(100);  // Then they are as wide as the gaps.
  EXPECT_EQ(widths()[3], 0.125);
  estimator.set_narrowing(1);
  EXPECT_EQ(widths(), wide);
}

TEST(TpeSampler, FindsGoodRegionsOfSeveralObjectives) {
  TestStudy test(settings_of(plane(), 2));
  const auto sampler = make_tpe({}, test.study.settings());
  int between = 0;
  for (int i = 0; i < 120; ++i) {
    const Point point = ask(*sampler, test.study);
    const double side = 10 * point[1] * point[1];
    std::vector<double> losses = {std::pow(point[0] - 1, 2) + side,
                                  std::pow(point[0] - 3, 2) + side};
    if (i % 10 == 3) losses[0] = kNan;
    if (i % 10 == 5) losses[1] = kInfinity;
    between += i >= 60 && point[0] > 0.5 && point[0] < 3.5 && std::abs(point[1]) < 1 ? 1 : 0;
    test.end(test.start(point), TrialState::kComplete, losses);
  }
  EXPECT_GE(between, 30);  // At random, 4.
  const Study copy = test.study;
  EXPECT_EQ(ask_anew(copy), ask(*sampler, test.study));
}

TEST(TpeSampler, PrefersTrialsWithinTheirLimits) {
  TestStudy test(settings_of(plane(), 1, 1));
  const auto sampler = make_tpe({}, test.study.settings());
  int within = 0;
  for (int i = 0; i < 100; ++i) {
    const Point point = ask(*sampler, test.study);
    within += i >= 50 && point[0] > 1 ? 1 : 0;
    // The smallest losses are where the limit is broken.
    test.end(test.start(point), TrialState::kComplete, {loss_at(point)}, {1 - point[0]});
  }
  EXPECT_GE(within, 30);  // At random, 20.
}

}  // namespace
}  // namespace gallop::tune
