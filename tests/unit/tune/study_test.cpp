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
class Told {
 public:
  explicit Told(size_t objectives = 1) : study(settings(objectives)) {}

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
  Told told;
  const int64_t trial = told.queue(0.25);
  EXPECT_EQ(told.study.waiting().count(trial), 1u);
  told.start(trial, 5);
  EXPECT_EQ(told.study.running().count(trial), 1u);
  told.tell({.kind = Kind::kPlaced, .trial = trial, .folder = "runs/a"});
  told.tell({.kind = Kind::kReported, .trial = trial, .step = 10, .losses = {2.5}});
  told.tell({.kind = Kind::kReported, .trial = trial, .step = 20, .losses = {NAN}});
  told.tell({.kind = Kind::kFinished, .trial = trial, .time = 9, .state = TrialState::kPruned});
  const Trial& known = told.study.trials()[0];
  EXPECT_EQ(known.state, TrialState::kPruned);
  EXPECT_EQ(known.point, Point{0.25});
  EXPECT_EQ(known.folder, "runs/a");
  EXPECT_EQ(known.worker, "w");
  EXPECT_EQ(known.started, 5);
  EXPECT_EQ(known.ended, 9);
  ASSERT_EQ(known.reports.size(), 2u);
  EXPECT_EQ(known.reports[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(known.reports[1].loss));
  EXPECT_EQ(told.study.finished(), std::vector<int64_t>{trial});
}

TEST(Study, RestartsATrial) {
  Told told;
  const int64_t trial = told.queue();
  told.start(trial);
  for (const int64_t step : {10, 20, 30}) {
    told.tell({.kind = Kind::kReported, .trial = trial, .step = step, .losses = {1.0}});
  }
  told.tell({.kind = Kind::kRequeued, .trial = trial});
  EXPECT_TRUE(told.study.running().empty());
  told.start(trial);
  EXPECT_EQ(told.study.trials()[0].attempt, 2);
  EXPECT_EQ(told.study.requeued(), std::vector<int64_t>{trial});
  EXPECT_EQ(told.study.trials()[0].rewinds, 0);
  told.tell({.kind = Kind::kReported, .trial = trial, .step = 20, .losses = {3.0}});
  ASSERT_EQ(told.study.trials()[0].reports.size(), 2u);
  EXPECT_EQ(told.study.trials()[0].reports[1].loss, 3);
  EXPECT_EQ(told.study.trials()[0].rewinds, 1);
}

TEST(Study, KeepsTheOrderOfQueuedAndFinishedTrials) {
  Told told;
  const int64_t first = told.queue();
  told.queue();
  told.start(first);
  told.tell({.kind = Kind::kFinished, .trial = first, .state = TrialState::kPruned});
  told.run({1});
  told.queue();
  std::vector<int64_t> known;
  for (const Trial& trial : told.study.trials()) known.push_back(trial.known_ends);
  EXPECT_EQ(known, (std::vector<int64_t>{0, 0, 1, 2}));
  told.tell({.kind = Kind::kRequeued, .trial = first});
  told.start(first);
  EXPECT_EQ(told.study.trials()[0].known_ends, 0);
  EXPECT_EQ(told.study.trials()[0].last_end, 0);
  told.tell({.kind = Kind::kFinished, .trial = first, .state = TrialState::kPruned});
  EXPECT_EQ(told.study.trials()[0].last_end, 2);
  EXPECT_EQ(told.study.trials()[1].last_end, -1);
}

TEST(Study, KnowsTheBest) {
  Told told;
  EXPECT_FALSE(told.study.best());
  told.run({2});
  told.run({1}, /*violation=*/5);
  const int64_t best = told.run({1.5});
  told.run({1.5});
  EXPECT_EQ(told.study.best(), best);
  told.run({NAN});
  told.tell({.kind = Kind::kRequeued, .trial = best});
  EXPECT_EQ(told.study.best(), best + 1);
  told.start(best);
  told.tell({.kind = Kind::kFinished,
             .trial = best,
             .state = TrialState::kComplete,
             .losses = {1.5},
             .violations = {0}});
  EXPECT_EQ(told.study.best(), best);
}

TEST(Study, HasNoNaNInItsParetoFront) {
  Told told(2);
  told.run({NAN, 0});
  EXPECT_TRUE(told.study.pareto_front().empty());
  const int64_t only = told.run({5, 5});
  told.run({0, NAN});
  EXPECT_EQ(told.study.pareto_front(), std::vector<int64_t>{only});
}

TEST(Study, KnowsTheParetoFront) {
  Told told(2);
  told.run({3, 3});
  const int64_t first = told.run({1, 4});
  const int64_t second = told.run({2, 2});
  told.run({2, 2});
  told.run({0, 0}, /*violation=*/1);
  const int64_t third = told.run({4, 1});
  EXPECT_EQ(told.study.pareto_front(), (std::vector<int64_t>{first, second, third}));
}

TEST(Study, CountsFailuresInARow) {
  Told told;
  for (int i = 0; i < 2; ++i) {
    const int64_t trial = told.queue();
    told.start(trial);
    told.tell({.kind = Kind::kFinished,
               .trial = trial,
               .state = TrialState::kFailed,
               .text = "exit code 1"});
  }
  EXPECT_EQ(told.study.failures_in_a_row(), 2);
  EXPECT_EQ(told.study.trials()[0].message, "exit code 1");
  EXPECT_EQ(told.study.count(TrialState::kFailed), 2);
  told.run({1});
  EXPECT_EQ(told.study.failures_in_a_row(), 0);
}

TEST(Study, RejectsInvalidEvents) {
  Told told;
  EXPECT_THROW(told.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 1}), DataError);
  EXPECT_THROW(told.tell({.kind = Kind::kQueued, .trial = 1, .point = {0.5}}), DataError);
  EXPECT_THROW(told.tell({.kind = Kind::kQueued, .trial = 0, .point = {1.5}}), DataError);
  told.queue();
  EXPECT_THROW(told.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 2}), DataError);
  told.start(0);
  EXPECT_THROW(told.tell({.kind = Kind::kStarted, .trial = 0, .attempt = 2}), DataError);
  EXPECT_THROW(told.tell({.kind = Kind::kFinished,
                          .trial = 0,
                          .state = TrialState::kComplete,
                          .losses = {1, 2},
                          .violations = {0}}),
               DataError);
  for (const TrialState state : {TrialState::kPruned, TrialState::kFailed}) {
    EXPECT_THROW(told.tell({.kind = Kind::kFinished, .trial = 0, .state = state, .losses = {1, 2}}),
                 DataError);
    EXPECT_THROW(
        told.tell({.kind = Kind::kFinished, .trial = 0, .state = state, .violations = {1, 2}}),
        DataError);
  }
  EXPECT_THROW(told.tell({.kind = Kind::kShared, .trial = 0, .step = 4, .parent = 1}), DataError);
  EXPECT_THROW(told.tell({.kind = Kind::kShared, .trial = 0, .step = 4, .parent = 0}), DataError);
  told.queue();
  EXPECT_THROW(told.tell({.kind = Kind::kShared, .trial = 1, .parent = 0}), DataError);
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
