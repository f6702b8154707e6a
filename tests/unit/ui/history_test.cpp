#include "gallop/ui/history.h"

#include <cmath>
#include <fstream>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/track/log.h"
#include "gallop/track/points.h"
#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::ui {
namespace {

using track::LogWriter;
using track::Record;
using track::RunsOfTest;
using Steps = std::vector<int64_t>;
using Values = std::vector<double>;

// The expected result, from reading the whole log at once.
std::map<std::string, MetricPoints> read_at_once(const fs::path& log) {
  std::map<std::string, MetricPoints> metrics;
  track::for_each_point(track::read_log(log), [&](const track::Point& point) {
    MetricPoints& metric = metrics[point.metric];
    metric.steps.push_back(point.step);
    metric.times.push_back(point.time);
    metric.values.push_back(point.value);
  });
  return metrics;
}

void expect_as_at_once(const RunHistory& history, const fs::path& log) {
  const auto expected = read_at_once(log);
  ASSERT_EQ(history.metrics().size(), expected.size());
  int64_t points = 0;
  for (const auto& [name, metric] : expected) {
    const MetricPoints& found = history.metrics().at(name);
    EXPECT_EQ(found.steps, metric.steps) << name;
    EXPECT_EQ(found.times, metric.times) << name;
    EXPECT_EQ(found.values, metric.values) << name;
    points += static_cast<int64_t>(metric.steps.size());
  }
  EXPECT_EQ(history.points(), points);
}

TEST(RunHistory, FollowsAGrowingLogWithSupersededSteps) {
  RunsOfTest runs;
  const fs::path log = runs.add("a", "{}", {0.5, 0.6, 0.7}) / "metrics.log";
  RunHistory history(log);
  history.update();
  expect_as_at_once(history, log);
  EXPECT_EQ(history.metrics().at("accuracy").steps, (Steps{10, 20, 30}));
  LogWriter writer(log, 20, {});  // Supersedes the records from the third on.
  history.update();
  EXPECT_EQ(history.metrics().at("accuracy").steps, (Steps{10, 20}));
  writer.append({.step = 25, .kind = "evaluation", .values = {{"accuracy", 0.9}}});
  history.update();
  EXPECT_EQ(history.metrics().at("accuracy").values, (Values{0.5, 0.6, 0.9}));
  expect_as_at_once(history, log);
  EXPECT_EQ(history.ends().size(), 1);
}

TEST(RunHistory, ReadsOnlyCompleteLines) {
  RunsOfTest runs;
  const fs::path log = runs.add("a", "{}", {0.5, 0.6}) / "metrics.log";
  const std::string text = read_file(log);
  for (size_t cut = 1; cut < text.size(); cut += 37) {
    const fs::path part = runs.path() / "part.log";
    std::ofstream(part, std::ios::binary) << text.substr(0, cut);
    RunHistory history(part);
    history.update();
    std::ofstream(part, std::ios::binary | std::ios::app) << text.substr(cut);
    history.update();
    expect_as_at_once(history, log);
    EXPECT_EQ(history.count(""), track::read_log(log).records.size());
  }
}

TEST(RunHistory, StartsOverWithAReplacedFile) {
  RunsOfTest runs;
  const fs::path a = runs.add("a", "{}", {0.5, 0.6}) / "metrics.log";
  const fs::path b = runs.add("b", "{}", {0.1, 0.2, 0.3, 0.4}) / "metrics.log";
  RunHistory history(a);
  history.update();
  // Overwritten in place: the file keeps its inode.
  std::ofstream(a, std::ios::binary) << read_file(b);
  history.update();
  expect_as_at_once(history, b);
  fs::remove(a);
  history.update();
  EXPECT_TRUE(history.metrics().empty());
  EXPECT_EQ(history.count(""), 0);
}

TEST(RunHistory, OmitsADamagedLine) {
  RunsOfTest runs;
  const fs::path log = runs.add("a", "{}", {0.5, 0.6, 0.7}) / "metrics.log";
  std::fstream(log, std::ios::in | std::ios::out).seekp(300).put('#');
  RunHistory history(log);
  history.update();
  expect_as_at_once(history, log);
  EXPECT_EQ(history.count(""), track::read_log(log).records.size());
  track::LogFollower follower(log);
  follower.read({.restart = [] {}, .record = [](const Record&, int64_t) {}});
  EXPECT_EQ(follower.damaged_lines(), 1);
}

TEST(RunHistory, ShowsRecordsByTheirKind) {
  RunsOfTest runs;
  const fs::path log = runs.add("a", "{}", {0.5, 0.6, 0.7}) / "metrics.log";
  LogWriter(log, 10, {}).append({.step = 12, .kind = "note", .texts = {{"text", "hello"}}});
  RunHistory history(log);
  history.update();
  EXPECT_EQ(history.count("evaluation"), 3);
  EXPECT_EQ(history.count("nothing"), 0);
  const auto second = history.records("evaluation", 1, 1);
  ASSERT_EQ(second.size(), 1);
  EXPECT_EQ(second[0].step, 20);
  EXPECT_TRUE(second[0].superseded);
  EXPECT_FALSE(history.records("evaluation", 0, 1)[0].superseded);
  EXPECT_EQ(history.records("", 0, 1000).size(), history.count(""));
  EXPECT_EQ(history.records("note", 0, 9)[0].texts.at("text"), "hello");
  EXPECT_TRUE(history.records("note", 1, 9).empty());
  EXPECT_EQ(history.kinds(),
            (std::vector<std::string>{"end", "evaluation", "note", "session", "step"}));
  fs::resize_file(log, 100);
  EXPECT_NE(error_of([&] { history.records("note", 0, 9); }).find("changed while it was read"),
            std::string::npos);
}

TEST(RunHistory, MatchesTheSummaryOfARun) {
  RunsOfTest runs;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const fs::path run = runs.add("a", "{}", {nan, 0.6, 0.2, nan});
  RunHistory history(run / "metrics.log");
  history.update();
  const auto expected = track::summarize_run(run).metrics.at("accuracy");
  const auto found = summary_of(history.metrics().at("accuracy"));
  EXPECT_TRUE(std::isnan(found.last));
  EXPECT_EQ(found.least, expected.least);
  EXPECT_EQ(found.most_step, expected.most_step);
  EXPECT_EQ(found.count, 4);
  EXPECT_EQ(history.energy().seconds,
            track::energy_of(track::read_log(run / "metrics.log")).seconds);
}

}  // namespace
}  // namespace gallop::ui
