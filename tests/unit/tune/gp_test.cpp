#include "gallop/tune/samplers/gp.h"

#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {
namespace {

using Kind = Event::Kind;
using Losses = std::vector<double>;

constexpr GpConfig kQuick{.startup = 4, .candidates = 128, .starts = 3, .samples = 16};

StudySettings settings_of(std::vector<Parameter> parameters,
                          std::vector<std::string> constraints = {}, size_t objectives = 1) {
  StudySettings settings{.seed = 5, .space = Space(std::move(parameters), std::move(constraints))};
  for (size_t i = 0; i < objectives; ++i) settings.objectives.push_back({"loss"});
  return settings;
}

/// A study whose trials a sampler asks for.
class Search {
 public:
  explicit Search(const StudySettings& settings, const GpConfig& config = kQuick)
      : study(settings), config_(config), sampler_(make_gp(config, settings)) {}

  Point ask() { return sampler_->ask(study, next()).value().point; }
  /// The point proposed by a new sampler.
  Point ask_another() const {
    return make_gp(config_, study.settings())->ask(study, next()).value().point;
  }
  int64_t start(const Point& point) {
    const int64_t number = next();
    study.apply({.kind = Kind::kQueued, .trial = number, .point = point});
    study.apply({.kind = Kind::kStarted, .trial = number, .attempt = 1});
    return number;
  }
  void finish(int64_t trial, Losses losses, Losses violations = {},
              TrialState state = TrialState::kComplete) {
    study.apply({.kind = Kind::kFinished,
                 .trial = trial,
                 .state = state,
                 .losses = std::move(losses),
                 .violations = std::move(violations)});
  }
  /// Runs a number of trials sequentially.
  void run(int64_t trials, const std::function<Losses(const Point&)>& losses) {
    for (int64_t i = 0; i < trials; ++i) {
      const Point point = ask();
      ASSERT_TRUE(study.space().contains(point) && study.space().allows(point));
      finish(start(point), losses(point));
    }
  }
  double best() const { return study.trials()[static_cast<size_t>(*study.best())].losses[0]; }

  Study study;

 private:
  int64_t next() const { return static_cast<int64_t>(study.trials().size()); }

  GpConfig config_;
  std::unique_ptr<Sampler> sampler_;
};

double bowl(const Point& point) {
  double sum = 0;
  for (const double x : point) sum += std::isnan(x) ? 0 : (x - 0.3) * (x - 0.3);
  return sum;
}

TEST(GpSampler, FindsTheMinimumOfAQuadratic) {
  Search search(settings_of({{"x", Interval{.low = -3, .high = 3}},
                             {"y", Interval{.low = -3, .high = 3}},
                             {"z", Interval{.low = -3, .high = 3}}}));
  search.run(25, [](const Point& point) { return Losses{bowl(point)}; });
  EXPECT_LT(search.best(), 1e-3);
}

TEST(GpSampler, FindsTheMinimumOfAConditionalSpace) {
  Search search(settings_of({{"layers", Interval{.low = 1, .high = 8, .step = 1, .integer = true}},
                             {"width", Interval{.low = 1, .high = 200, .step = 1, .integer = true}},
                             {"kind", Choices{{"\"a\"", "\"b\"", "\"c\""}}},
                             {"rate", Interval{.low = 1e-5, .high = 1, .scale = Scale::kLog},
                              Condition{.parent = 2, .choices = {1}}},
                             {"only", Choices{{"7"}}}}));
  search.run(60, [](const Point& point) {
    const double rate = point[2] == 1 ? std::abs(std::log10(point[3]) + 2) : 3;
    return Losses{std::abs(point[0] - 6) + std::abs(point[1] - 120) / 40 + rate};
  });
  EXPECT_LT(search.best(), 0.5);
}

TEST(GpSampler, IsDeterministicAcrossRestarts) {
  Search search(settings_of({{"x", Interval{}},
                             {"steps", Interval{.low = 0, .high = 40, .step = 1, .integer = true}},
                             {"kind", Choices{{"1", "2", "3"}}}}));
  std::vector<int64_t> running;
  for (int64_t i = 0; i < 70; ++i) {
    const Point point = search.ask();
    if (i % 6 == 0) {
      EXPECT_EQ(search.ask_another(), point) << i;
    }
    EXPECT_EQ(search.ask(), point);
    running.push_back(search.start(point));
    if (running.size() < 4) continue;
    const int64_t ended = running[static_cast<size_t>(i * 7 % 4)];
    std::erase(running, ended);
    const Point& at = search.study.trials()[static_cast<size_t>(ended)].point;
    if (i % 13 == 5) {
      search.finish(ended, {}, {}, TrialState::kFailed);
    } else {
      search.finish(ended, {at[0] * at[0] + std::sin(at[1]) + at[2]});
    }
  }
}

TEST(GpSampler, SpreadsParallelTrials) {
  Search search(settings_of({{"x", Interval{}}, {"y", Interval{}}}));
  search.run(12, [](const Point& point) { return Losses{bowl(point)}; });
  std::vector<Point> points;
  for (int i = 0; i < 6; ++i) {
    points.push_back(search.ask());
    search.start(points.back());
  }
  for (size_t i = 0; i < points.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      EXPECT_GT(std::hypot(points[i][0] - points[j][0], points[i][1] - points[j][1]), 1e-3);
    }
  }
}

TEST(GpSampler, StartsWithTheCorrectFrequencies) {
  const StudySettings settings =
      settings_of({{"kind", Choices{{"1", "2", "3"}, {1, 0, 3}}}, {"x", Interval{}}});
  const auto sampler = make_gp(kQuick, settings);
  const Study study(settings);
  std::vector<int> kinds(3);
  for (int64_t number = 0; number < 256; ++number) {
    ++kinds[static_cast<size_t>(sampler->ask(study, number)->point[0])];
  }
  EXPECT_EQ(kinds, (std::vector<int>{64, 0, 192}));
}

TEST(GpSampler, TriesAllPointsOfASmallSpaceOnce) {
  Search search(settings_of({{"x", Interval{.low = 1, .high = 4, .step = 1, .integer = true}},
                             {"kind", Choices{{"1", "2", "3"}}}}));
  search.run(8, [](const Point& point) { return Losses{point[0] + point[1]}; });
  std::set<Point> tried;
  for (int i = 0; i < 4; ++i) {
    const Point point = search.ask();
    for (const Trial& trial : search.study.trials()) EXPECT_NE(trial.point, point);
    search.finish(search.start(point), {point[0] + point[1]});
  }
  for (const Trial& trial : search.study.trials()) tried.insert(trial.point);
  EXPECT_EQ(tried.size(), 12u);
  EXPECT_TRUE(search.study.space().contains(search.ask()));
}

TEST(GpSampler, SatisfiesConstraintsOfTheSpace) {
  Search search(settings_of({{"x", Interval{}}, {"y", Interval{}}}, {"x + y >= 1.6"}));
  search.run(16, [](const Point& point) { return Losses{bowl(point)}; });
  EXPECT_LT(search.best(), 0.55);  // The least, at x = y = 0.8, is 0.5.
}

TEST(GpSampler, SatisfiesLimits) {
  StudySettings settings = settings_of({{"x", Interval{}}, {"y", Interval{}}});
  settings.limits = {{"memory", 1}};
  Search search(settings);
  int allowed = 0;
  double best = 1;
  for (int i = 0; i < 25; ++i) {
    const Point point = search.ask();
    const double violation = 0.9 - point[0] - point[1];
    if (i >= 15 && violation <= 0.02) ++allowed;
    if (violation <= 0) best = std::min(best, bowl(point));
    search.finish(search.start(point), {bowl(point)}, {violation});
  }
  EXPECT_GE(allowed, 7);
  EXPECT_LT(best, 0.06);  // The least, at x = y = 0.45, is 0.045.
}

TEST(GpSampler, SearchesForFeasiblePointsFirst) {
  StudySettings settings = settings_of({{"x", Interval{}}, {"y", Interval{}}});
  settings.limits = {{"memory", 1}};
  Search search(settings);
  int trials = 0;
  for (; trials < 20 && !search.study.best().has_value(); ++trials) {
    const Point point = search.ask();
    const double distance = std::hypot(point[0] - 0.9, point[1] - 0.2);
    search.finish(search.start(point), {point[0]}, {distance - 0.03});
  }
  EXPECT_TRUE(search.study.best().has_value());
  EXPECT_GT(trials, kQuick.startup);
}

TEST(GpSampler, ImprovesAFront) {
  for (const size_t objectives : {2, 3}) {
    Search search(settings_of({{"x", Interval{}}, {"y", Interval{}}}, {}, objectives));
    const auto losses = [objectives](const Point& point) {
      Losses all{point[0] + point[1] * point[1], 1 - point[0] + point[1] * point[1]};
      if (objectives == 3) all.push_back(std::abs(point[0] - 0.5) + point[1]);
      return all;
    };
    search.run(14, losses);
    const Point point = search.ask();
    EXPECT_EQ(search.ask_another(), point);
    search.start(point);
    EXPECT_NE(search.ask(), point);
    LossRows front;
    for (const int64_t number : search.study.pareto_front()) {
      front.push_back(search.study.trials()[static_cast<size_t>(number)].losses);
    }
    if (objectives == 2) {
      EXPECT_GT(hypervolume(front, {1, 1}), 0.4);  // The maximum is 0.5.
    }
  }
  EXPECT_THROW(make_gp({}, settings_of({{"x", Interval{}}}, {}, 4)), UsageError);
}

// ZDT2 (Zitzler et al., "Comparison of multiobjective evolutionary algorithms", 2000): from one end
// of its front no gradient leads along it.
TEST(GpSampler, CoversAConcaveFront) {
  constexpr size_t kParameters = 6;
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < kParameters; ++i)
    parameters.push_back({fmt::format("x{}", i), Interval{}});
  Search search(settings_of(parameters, {}, 2));
  search.run(40, [](const Point& point) {
    const double distance =
        1 + 9 * std::accumulate(point.begin() + 1, point.end(), 0.0) / (kParameters - 1);
    return Losses{point[0], distance - point[0] * point[0] / distance};
  });
  EXPECT_EQ(search.ask_another(), search.ask());
  LossRows front;
  for (const int64_t number : search.study.pareto_front()) {
    front.push_back(search.study.trials()[static_cast<size_t>(number)].losses);
  }
  EXPECT_GT(hypervolume(front, {1, 1}), 0.28);  // The maximum is 1/3.
}

TEST(GpSampler, TreatsNonFiniteLossesAsBad) {
  const double infinity = std::numeric_limits<double>::infinity();
  Search search(settings_of({{"x", Interval{}}}));
  search.run(15, [&](const Point& point) {
    if (point[0] > 0.8) return Losses{std::nan("")};
    return Losses{point[0] > 0.6 ? infinity : bowl(point)};
  });
  EXPECT_LT(search.best(), 1e-3);
  Search nothing(settings_of({{"x", Interval{}}}));
  nothing.run(8, [&](const Point&) { return Losses{infinity}; });
  Search constant(settings_of({{"x", Interval{}}}));
  constant.run(8, [&](const Point&) { return Losses{1}; });
}

TEST(GpSampler, AvoidsFailedAndPrunedRegions) {
  Search search(settings_of({{"x", Interval{}}}));
  int ended_early = 0;
  for (int i = 0; i < 24; ++i) {
    const Point point = search.ask();
    const int64_t trial = search.start(point);
    if (point[0] < 0.2) {
      search.finish(trial, {}, {}, TrialState::kFailed);
      ended_early += i >= 8 ? 1 : 0;
    } else if (point[0] > 0.7) {
      search.study.apply({.kind = Kind::kReported, .trial = trial, .step = 1, .losses = {2}});
      search.finish(trial, {}, {}, TrialState::kPruned);
      ended_early += i >= 8 ? 1 : 0;
    } else {
      search.finish(trial, {bowl(point)});
    }
  }
  EXPECT_LT(search.best(), 1e-3);
  EXPECT_LE(ended_early, 6);
}

TEST(GpSampler, ReturnsTheOnlyPoint) {
  Search search(settings_of({{"only", Choices{{"3"}}}, {"same", Interval{.low = 2, .high = 2}}}));
  search.run(8, [](const Point& point) { return Losses{point[1]}; });
  EXPECT_EQ(search.ask(), (Point{0, 2}));
}

TEST(GpSampler, LimitsTheSizeOfItsModel) {
  GpConfig config = kQuick;
  config.most_trials = 20;
  Search search(settings_of({{"x", Interval{}}, {"y", Interval{}}}), config);
  search.run(47, [](const Point& point) { return Losses{bowl(point)}; });
  EXPECT_EQ(search.ask_another(), search.ask());
  EXPECT_LT(search.best(), 1e-3);
}

TEST(GpSampler, CountsStartUpTrialsThatItsModelOmits) {
  GpConfig config = kQuick;
  config.startup = config.most_trials = 20;
  Search search(settings_of({{"x", Interval{}}, {"y", Interval{}}}), config);
  search.run(22, [](const Point& point) { return Losses{bowl(point)}; });
  const auto starting = make_gp({.startup = 1000}, search.study.settings());
  EXPECT_NE(search.ask(), starting->ask(search.study, 22)->point);
}

}  // namespace
}  // namespace gallop::tune
