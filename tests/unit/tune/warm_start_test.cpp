#include "gallop/tune/warm_start.h"

#include <cmath>

#include <gtest/gtest.h>

#include "unit/tune/build.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

StudySettings earlier_settings() {
  return {.name = "earlier",
          .space = Space({{"rate", Interval{.low = 1e-3, .high = 10, .scale = Scale::kLog}},
                          {"name", Choices{{"\"a\"", "\"b\"", "\"c\""}}},
                          {"only", Interval{}, Condition{.parent = 1, .choices = {1}}}},
                         {}),
          .objectives = {{"accuracy", true}},
          .limits = {{"memory", 100}}};
}

/// Other bounds, another order, without a choice.
StudySettings later_settings() {
  return {.name = "later",
          .space = Space({{"name", Choices{{"\"b\"", "\"a\""}}},
                          {"only", Interval{}, Condition{.parent = 0, .choices = {0}}},
                          {"rate", Interval{.low = 1e-2, .high = 1}}},
                         {"rate < 0.9"}),
          .objectives = {{"accuracy", false}},
          .limits = {{"memory", 80}},
          .trials = 5};
}

/// A study with a complete trial of each point, and a pruned one.
TestStudy earlier_study() {
  TestStudy test(earlier_settings());
  for (const Point& point : {Point{0.5, 0, kInactive},
                             {0.1, 1, 0.25},
                             {5, 0, kInactive},
                             {0.5, 2, kInactive},
                             {0.95, 0, kInactive}}) {
    const int64_t number = test.queue(point);
    test.run(number);
    test.report(number, 10, -0.25);
    test.study.apply({.kind = Event::Kind::kFinished,
                      .trial = number,
                      .time = 50,
                      .state = TrialState::kComplete,
                      .losses = {-0.75},
                      .violations = {-10}});
  }
  const int64_t pruned = test.queue({0.2, 0, kInactive});
  test.run(pruned);
  test.report(pruned, 3, -0.125);
  test.end(pruned, TrialState::kPruned, {});
  test.run(test.queue({0.3, 0, kInactive}));
  const int64_t failed = test.queue({0.4, 0, kInactive});
  test.run(failed);
  test.end(failed, TrialState::kFailed, {});
  return test;
}

TEST(WarmStart, ImportsTrialsWithinTheSpace) {
  const TestStudy earlier = earlier_study();
  TestStudy later(later_settings());
  const auto pruner = build_pruner("{}", later_settings());
  const WarmStart warm = warm_start(later.study, earlier.study, *pruner);
  EXPECT_EQ(warm.taken, 3);
  EXPECT_EQ(warm.outside, 3);
  for (const Event& event : warm.events) later.study.apply(parse_event(to_json(event)));

  ASSERT_EQ(later.study.trials().size(), 3u);
  EXPECT_EQ(later.study.wanted_trials(), 8);
  EXPECT_EQ(later.trial(0).point[0], 1);
  EXPECT_EQ(later.trial(0).point[2], 0.5);
  EXPECT_TRUE(std::isnan(later.trial(0).point[1]));
  EXPECT_EQ(later.trial(1).point, (Point{0, 0.25, 0.1}));
  EXPECT_EQ(later.trial(1).state, TrialState::kComplete);
  EXPECT_EQ(later.trial(1).losses, std::vector{0.75});
  EXPECT_EQ(later.trial(1).violations, std::vector{10.0});
  EXPECT_EQ(later.trial(1).worker, "earlier 1");
  EXPECT_EQ(later.trial(1).ended, 50);
  ASSERT_EQ(later.trial(1).reports.size(), 1u);
  EXPECT_EQ(later.trial(1).reports[0].loss, 0.25);
  EXPECT_EQ(later.trial(2).state, TrialState::kPruned);
  EXPECT_EQ(later.trial(2).reports[0].step, 3);
}

TEST(WarmStart, MatchesObjectivesAndLimitsByMetric) {
  const TestStudy earlier = earlier_study();
  StudySettings settings = earlier_settings();
  settings.objectives = {{"memory", false}, {"accuracy", true}};
  settings.limits = {};
  TestStudy later(settings);
  const auto pruner = build_pruner("{}", earlier_settings());
  const WarmStart warm = warm_start(later.study, earlier.study, *pruner);
  for (const Event& event : warm.events) later.study.apply(event);
  // Pruning and reports were by accuracy.
  ASSERT_EQ(later.study.trials().size(), 5u);
  EXPECT_EQ(later.trial(0).losses, (std::vector{90, -0.75}));
  EXPECT_TRUE(later.trial(0).reports.empty());

  settings.objectives[1].metric = "time";
  EXPECT_EQ(refusal([&] { warm_start(Study(settings), earlier.study, *pruner); }),
            "the study 'earlier' has no metric time");
}

TEST(WarmStart, ImportsReportsForPruners) {
  TestStudy earlier(plain_settings());
  for (const double loss : {1.0, 2.0, 3.0, 4.0, 5.0}) {
    const int64_t number = earlier.queue();
    earlier.run(number);
    earlier.report(number, 1, loss);
    earlier.complete(number, loss);
  }
  TestStudy later(plain_settings());
  const auto pruner = build_pruner("{name: median}", plain_settings());
  for (const Event& event : warm_start(later.study, earlier.study, *pruner).events) {
    later.study.apply(event);
  }
  const int64_t number = later.queue();
  later.run(number);
  later.report(number, 1, 3.5);
  EXPECT_TRUE(pruner->should_stop(later.study, later.trial(number)));
}

TEST(WarmStart, SkipsSegmentsOfPopulations) {
  TestStudy earlier(plain_settings());
  earlier.study.apply(
      {.kind = Event::Kind::kQueued, .trial = 0, .member = 0, .last_step = 10, .point = {0.5}});
  earlier.run(0);
  earlier.complete(0, 1);
  const auto pruner = build_pruner("{}", plain_settings());
  const WarmStart warm = warm_start(Study(plain_settings()), earlier.study, *pruner);
  EXPECT_TRUE(warm.events.empty());
  EXPECT_EQ(warm.outside, 0);
}

}  // namespace
}  // namespace gallop::tune
