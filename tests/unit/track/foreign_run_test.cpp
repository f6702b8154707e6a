#include "gallop/track/foreign_run.h"

#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/track/points.h"
#include "gallop/track/run_summary.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

// Other programs accept nearly any name, and any text.
TEST(ForeignRun, KeepsOptionsOfAnyName) {
  RunsOfTest runs;
  ForeignRun run;
  std::map<std::string, std::string> options;
  for (const char* name :
       {"a",          "a.b",    "batch-size", "learning rate", "a: b",       "- x",
        "*a",         "&b",     "{x}",        "[1]",           "#k",         "!!t",
        "?",          "%d",     "@at",        "`t`",           "null",       "true",
        "1.5",        "<<",     "=",          "---",           "it's",       "é",
        "two\nlines", "k\ttab", "\x1b[31m",   "\"quoted\"",    "back\\slash"}) {
    options[name] = std::string("value of ") + name;
  }
  options["long"] = std::string(6000, 'x');
  options["empty"] = "";
  options["blank"] = "  x ";
  options["list"] = "[1,";
  for (const auto& [name, text] : options) run.set_option(name, text);
  run.add("val-loss", 3, 1.7e9, 0.5);
  run.make(runs.path(), "one", "mlflow");
  const RunSummary summary = summarize_run(runs.path() / "one");
  EXPECT_EQ(summary.trouble, "");
  EXPECT_EQ(summary.params, options);
  EXPECT_EQ(summary.metrics.at("val-loss").last, 0.5);
}

class ForeignRunMade : public testing::Test {
 protected:
  RunSummary made(const ForeignRun& run) {
    run.make(runs_.path(), "a", "a test");
    return summarize_run(runs_.path() / "a");
  }

 private:
  RunsOfTest runs_;
};

TEST_F(ForeignRunMade, SpansItsPoints) {
  ForeignRun run;
  run.add("loss", 1, 1000, 0.5);
  run.add("loss", 2, 1030, 0.25);
  run.set_ending(ForeignRun::Ending::kFinished);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 30);
}

TEST_F(ForeignRunMade, UsesTheRecordedDuration) {
  ForeignRun run;
  run.add("value", 0, 1030, 0.5);  // The final value of a trial, and no earlier one.
  run.set_ending(ForeignRun::Ending::kFinished);
  run.set_times(1000, 1040);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 40);
}

TEST_F(ForeignRunMade, HasTimesWithoutAnyPoint) {
  ForeignRun run;
  run.set_ending(ForeignRun::Ending::kStopped);
  run.set_times(1000, 1040);
  const RunSummary summary = made(run);
  EXPECT_EQ(summary.created, 1000);
  EXPECT_EQ(summary.seconds, 40);
  EXPECT_EQ(summary.state, RunState::kStopped);
}

// The points of a metric, by step, in the order in which they are exported.
std::vector<std::pair<int64_t, double>> points_of(const fs::path& run, const std::string& metric) {
  std::vector<std::pair<int64_t, double>> points;
  for_each_point(read_log(run / "metrics.log"), [&](const Point& point) {
    if (point.metric == metric) points.emplace_back(point.step, point.value);
  });
  return points;
}

using Points = std::vector<std::pair<int64_t, double>>;

TEST(ForeignRun, KeepsAllPointsOfOneStep) {
  RunsOfTest runs;
  ForeignRun run;
  // A restarted run, and a duplicate time.
  for (const auto& [step, time, value] : std::vector<std::tuple<int64_t, double, double>>{
           {0, 1, 0.5}, {1, 2, 0.4}, {2, 3, 0.3}, {1, 4, 0.35}, {2, 5, 0.25}, {2, 5, 0.2}}) {
    run.add("loss", step, time, value);
    run.add("train/loss", step, time, value);
  }
  run.number_points_without_step();
  run.make(runs.path(), "a", "a test");
  const Points all = {{0, 0.5}, {1, 0.4}, {1, 0.35}, {2, 0.3}, {2, 0.25}, {2, 0.2}};
  EXPECT_EQ(points_of(runs.path() / "a", "loss"), all);
  EXPECT_EQ(points_of(runs.path() / "a", "train.loss"), all);
  EXPECT_EQ(run.summary().points, 12);
  EXPECT_EQ(run.summary().notes,
            std::vector<std::string>{"6 points repeat a step of their metric; all are kept"});
}

TEST(ForeignRun, NumbersPointsWithoutStepsByTheirTime) {
  RunsOfTest runs;
  ForeignRun run;
  for (const auto& [time, value] : Points{{12, 0.2}, {10, 0.4}, {11, 0.3}, {12, 0.1}}) {
    run.add("loss", 0, static_cast<double>(time), value);
  }
  run.add("once", 0, 10, 5);
  run.add("counted", 0, 10, 7);
  run.add("counted", 1, 11, 8);
  run.number_points_without_step();
  run.make(runs.path(), "a", "a test");
  EXPECT_EQ(points_of(runs.path() / "a", "loss"), (Points{{0, 0.4}, {1, 0.3}, {2, 0.2}, {3, 0.1}}));
  EXPECT_EQ(points_of(runs.path() / "a", "once"), (Points{{0, 5}}));
  EXPECT_EQ(points_of(runs.path() / "a", "counted"), (Points{{0, 7}, {1, 8}}));
  EXPECT_EQ(run.summary().notes,
            std::vector<std::string>{"4 points logged without a step are numbered by time"});
}

TEST(ForeignRun, KeepsMetricsWithConflictingNamesApart) {
  RunsOfTest runs;
  ForeignRun run;
  const std::vector<std::string> names = {
      "loss", "evaluation/loss", "train/loss",  "train.loss", "epoch",
      "best", "val/epoch",       "train/epoch", "step/epoch", "evaluation/best"};
  for (size_t i = 0; i < names.size(); ++i) run.add(names[i], 1, 10, static_cast<double>(i));
  run.make(runs.path(), "a", "a test");
  std::map<std::string, double> found;
  for_each_point(read_log(runs.path() / "a" / "metrics.log"),
                 [&](const Point& point) { found[point.metric] = point.value; });
  EXPECT_EQ(found, (std::map<std::string, double>{{"loss", 0},
                                                  {"loss-2", 1},
                                                  {"train.loss", 2},
                                                  {"train.loss-2", 3},
                                                  {"imported.epoch", 4},
                                                  {"imported.best", 5},
                                                  {"val.epoch", 6},
                                                  {"train.epoch", 7},
                                                  {"step/epoch", 8},
                                                  {"imported.best-2", 9}}));
  ASSERT_EQ(run.summary().notes.size(), 3u);
  EXPECT_EQ(run.summary().notes[0],
            "metric 'evaluation/loss' is renamed to 'loss-2', as 'loss' is already used");
}

TEST(ForeignRun, KeepsNonFiniteValues) {
  RunsOfTest runs;
  ForeignRun run;
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  run.add("loss", 1, nan, infinity);
  run.add("loss", 2, infinity, nan);
  run.make(runs.path(), "a", "a test");
  const Points points = points_of(runs.path() / "a", "loss");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].second, infinity);
  EXPECT_TRUE(std::isnan(points[1].second));
}

TEST(ForeignRun, HasAUniqueName) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(run_names({"a/b", "a-b", "a", "a", "a-b-2"}),
            (Names{"a-b-3", "a-b", "a", "a-2", "a-b-2"}));
  EXPECT_EQ(run_names({".hidden", "hidden", "..", "", "a\nb", "/"}),
            (Names{"hidden-2", "hidden", "run", "run-2", "a-b", "-"}));
  const std::string letters(100, 'x'), umlauts = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += "ä";
    return text;
  }();
  for (const std::string& name : run_names({letters + umlauts, letters + letters + letters})) {
    EXPECT_NO_THROW(RunFolder::check_name(name + "-99")) << name;
  }
  EXPECT_EQ(run_names({letters + umlauts}).front().size(), 180u);
}

TEST(ForeignRun, LeavesNoFilesIfItCannotBeWritten) {
  RunsOfTest runs;
  ForeignRun run;
  run.add("loss", 1, 10, 0.5);
  fs::create_directories(runs.path() / "a" / "metrics.log");  // In place of the log.
  EXPECT_THROW(run.make(runs.path(), "a", "a test"), Error);
  EXPECT_FALSE(RunFolder::is_run(runs.path() / "a"));
}

}  // namespace
}  // namespace gallop::track
