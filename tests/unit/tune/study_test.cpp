#include "gallop/tune/study.h"

#include <cmath>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::tune {
namespace {

using Kind = Event::Kind;

StudySettings settings(size_t objectives = 1) {
  StudySettings settings{.name = "test",
                         .seed = 7,
                         .space = Space({{"x", Interval{}}}, {}),
                         .limits = {{"memory", 100}}};
  for (size_t i = 0; i < objectives; ++i) settings.objectives.push_back({"loss", false});
  return settings;
}

/// A study that serializes its events, as a storage does.
class SerializedStudy {
 public:
  explicit SerializedStudy(size_t objectives = 1) : study(settings(objectives)) {}

  void tell(const Event& event) { study.apply(parse_event(to_json(event))); }

  int64_t queue(double x = 0.5) {
    const auto number = static_cast<int64_t>(study.trials().size());
    tell({.kind = Kind::kQueued, .trial = number, .point = {x}});
    return number;
  }
  void start(int64_t trial, double time = 1) {
    const int32_t attempt = study.trials()[static_cast<size_t>(trial)].attempt + 1;
    tell({.kind = Kind::kStarted, .trial = trial, .time = time, .attempt = attempt, .text = "w"});
  }
  int64_t run(std::vector<double> losses, double violation = 0) {
    const int64_t trial = queue();
    start(trial);
    tell({.kind = Kind::kFinished,
          .trial = trial,
          .time = 2,
          .state = TrialState::kComplete,
          .losses = std::move(losses),
          .violations = {violation}});
    return trial;
  }

  Study study;
};

TEST(Study, FollowsATrial) {
  SerializedStudy test;
  const int64_t trial = test.queue(0.25);
  EXPECT_EQ(test.study.waiting().count(trial), 1u);
  test.start(trial, 5);
  EXPECT_EQ(test.study.running().count(trial), 1u);
  test.tell({.kind = Kind::kPlaced, .trial = trial, .folder = "runs/a"});
  test.tell({.kind = Kind::kReported, .trial = trial, .step = 10, .losses = {2.5}});
  test.tell({.kind = Kind::kReported, .trial = trial, .step = 20, .losses = {NAN}});
  test.tell({.kind = Kind::kFinished, .trial = trial, .time = 9, .state = TrialState::kPruned});
  const Trial& known = test.study.trials()[0];
  EXPECT_EQ(known.state, TrialState::kPruned);
  EXPECT_EQ(known.point, Point{0.25});
  EXPECT_EQ(known.folder, "runs/a");
  EXPECT_EQ(known.worker, "w");
  EXPECT_EQ(known.started, 5);
  EXPECT_EQ(known.ended, 9);
  ASSERT_EQ(known.reports.size(), 2u);
  EXPECT_EQ(known.reports[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(known.reports[1].loss));
  EXPECT_EQ(test.study.finished(), std::vector<int64_t>{trial});
}

TEST(Study, RestartsATrial) {
  SerializedStudy test;
  const int64_t trial = test.queue();
  test.start(trial);
  for (const int64_t step : {10, 20, 30}) {
    test.tell({.kind = Kind::kReported, .trial = trial, .step = step, .losses = {1.0}});
  }
  test.tell({.kind = Kind::kRequeued, .trial = trial});
  EXPECT_TRUE(test.study.running().empty());
  test.start(trial);
  EXPECT_EQ(test.study.trials()[0].attempt, 2);
  EXPECT_EQ(test.study.requeued(), std::vector<int64_t>{trial});
  EXPECT_EQ(test.study.trials()[0].rewinds, 0);
  test.tell({.kind = Kind::kReported, .trial = trial, .step = 20, .losses = {3.0}});
  ASSERT_EQ(test.study.trials()[0].reports.size(), 2u);
  EXPECT_EQ(test.study.trials()[0].reports[1].loss, 3);
  EXPECT_EQ(test.study.trials()[0].rewinds, 1);
}

TEST(Study, KeepsTheOrderOfQueuedAndFinishedTrials) {
  SerializedStudy test;
  const int64_t first = test.queue();
  test.queue();
  test.start(first);
  test.tell({.kind = Kind::kFinished, .trial = first, .state = TrialState::kPruned});
  test.run({1});
  test.queue();
  std::vector<int64_t> known;
  for (const Trial& trial : test.study.trials()) known.push_back(trial.known_ends);
  EXPECT_EQ(known, (std::vector<int64_t>{0, 0, 1, 2}));
  test.tell({.kind = Kind::kRequeued, .trial = first});
  test.start(first);
  EXPECT_EQ(test.study.trials()[0].known_ends, 0);
  EXPECT_EQ(test.study.trials()[0].last_end, 0);
  test.tell({.kind = Kind::kFinished, .trial = first, .state = TrialState::kPruned});
  EXPECT_EQ(test.study.trials()[0].last_end, 2);
  EXPECT_EQ(test.study.trials()[1].last_end, -1);
}

TEST(Study, KnowsTheBest) {
  SerializedStudy test;
  EXPECT_FALSE(test.study.best());
  test.run({2});
  test.run({1}, /*violation=*/5);
  const int64_t best = test.run({1.5});
  test.run({1.5});
  EXPECT_EQ(test.study.best(), best);
  test.run({NAN});
  test.tell({.kind = Kind::kRequeued, .trial = best});
  EXPECT_EQ(test.study.best(), best + 1);
  test.start(best);
  test.tell({.kind = Kind::kFinished,
             .trial = best,
             .state = TrialState::kComplete,
             .losses = {1.5},
             .violations = {0}});
  EXPECT_EQ(test.study.best(), best);
}

TEST(Study, HasNoNaNInItsParetoFront) {
  SerializedStudy test(2);
  test.run({NAN, 0});
  EXPECT_TRUE(test.study.pareto_front().empty());
  const int64_t only = test.run({5, 5});
  test.run({0, NAN});
  EXPECT_EQ(test.study.pareto_front(), std::vector<int64_t>{only});
}

TEST(Study, KnowsTheParetoFront) {
  SerializedStudy test(2);
  test.run({3, 3});
  const int64_t first = test.run({1, 4});
  const int64_t second = test.run({2, 2});
  test.run({2, 2});
  test.run({0, 0}, /*violation=*/1);
  const int64_t third = test.run({4, 1});
  EXPECT_EQ(test.study.pareto_front(), (std::vector<int64_t>{first, second, third}));
}

TEST(Study, CountsFailuresInARow) {
  SerializedStudy test;
  for (int i = 0; i < 2; ++i) {
    const int64_t trial = test.queue();
    test.start(trial);
    test.tell({.kind = Kind::kFinished,
               .trial = trial,
               .state = TrialState::kFailed,
               .text = "exit code 1"});
  }
  EXPECT_EQ(test.study.failures_in_a_row(), 2);
  EXPECT_EQ(test.study.trials()[0].message, "exit code 1");
  EXPECT_EQ(test.study.count(TrialState::kFailed), 2);
  test.run({1});
  EXPECT_EQ(test.study.failures_in_a_row(), 0);
}

TEST(Study, RejectsInvalidEvents) {
  SerializedStudy test;
  EXPECT_THROW(test.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 1}), DataError);
  EXPECT_THROW(test.tell({.kind = Kind::kQueued, .trial = 1, .point = {0.5}}), DataError);
  EXPECT_THROW(test.tell({.kind = Kind::kQueued, .trial = 0, .point = {1.5}}), DataError);
  test.queue();
  EXPECT_THROW(test.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 2}), DataError);
  test.start(0);
  EXPECT_THROW(test.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 2}), DataError);
  EXPECT_THROW(test.tell({.kind = Kind::kFinished,
                          .trial = 0,
                          .state = TrialState::kComplete,
                          .losses = {1, 2},
                          .violations = {0}}),
               DataError);
  for (const TrialState state : {TrialState::kPruned, TrialState::kFailed}) {
    EXPECT_THROW(test.tell({.kind = Kind::kFinished, .trial = 0, .state = state, .losses = {1, 2}}),
                 DataError);
    EXPECT_THROW(
        test.tell({.kind = Kind::kFinished, .trial = 0, .state = state, .violations = {1, 2}}),
        DataError);
  }
  EXPECT_THROW(test.tell({.kind = Kind::kShared, .trial = 0, .step = 4, .parent = 1}), DataError);
  EXPECT_THROW(test.tell({.kind = Kind::kShared, .trial = 0, .step = 4, .parent = 0}), DataError);
  test.queue();
  EXPECT_THROW(test.tell({.kind = Kind::kShared, .trial = 1, .parent = 0}), DataError);
  EXPECT_THROW(parse_event(R"({"event": "lost", "time": 0})"), DataError);
  EXPECT_THROW(parse_event("{"), DataError);
}

TEST(Settings, RoundTripThroughJson) {
  StudySettings written = settings(2);
  written.objectives[1] = {"accuracy", true};
  written.sampler = R"({"name":"tpe"})";
  EXPECT_EQ(to_json(parse_settings(to_json(written))), to_json(written));
  std::string newer = to_json(written);
  newer.replace(newer.find("\"version\":1"), 11, "\"version\":9");
  EXPECT_THROW(parse_settings(newer), DataError);
  written.objectives.clear();
  EXPECT_THROW(parse_settings(to_json(written)), DataError);
}

}  // namespace
}  // namespace gallop::tune
