#include "gallop/track/run_reader.h"

#include <fstream>

#include <gtest/gtest.h>

#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

/// A run in training: its lock is held, and its log grows.
class RunReaderOfTest : public testing::Test {
 protected:
  RunReaderOfTest() { begin(0); }

  void begin(int64_t step) { log_.emplace(run_.log(), step, std::map<std::string, std::string>{}); }

  void add(int64_t step, const char* kind, const char* value, double number) {
    log_->append({.step = step, .kind = kind, .values = {{value, number}}});
  }

  // Each update of a reader equals the result of a new one.
  void look() {
    const RunSummary found = reader_.read(run_.path()), wanted = RunReader().read(run_.path());
    EXPECT_EQ(found.state, RunState::kTraining);
    EXPECT_EQ(found.steps, wanted.steps);
    EXPECT_EQ(found.created, wanted.created);
    EXPECT_EQ(found.seconds, wanted.seconds);
    EXPECT_EQ(found.end, wanted.end);
    EXPECT_EQ(found.trouble, wanted.trouble);
    ASSERT_EQ(found.metrics.size(), wanted.metrics.size());
    for (const auto& [name, metric] : wanted.metrics) {
      const MetricSummary& one = found.metrics.at(name);
      EXPECT_EQ(std::tuple(one.last, one.least, one.most, one.last_step, one.least_step,
                           one.most_step, one.count),
                std::tuple(metric.last, metric.least, metric.most, metric.last_step,
                           metric.least_step, metric.most_step, metric.count))
          << name;
    }
  }

  RunsOfTest runs_;
  RunFolder run_ = RunFolder::create(runs_.path(), "a", "model: {name: mlp}\n", {});
  std::optional<LogWriter> log_;
  RunReader reader_;
};

TEST_F(RunReaderOfTest, FollowsAGrowingLog) {
  look();
  for (int64_t step = 1; step <= 5; ++step) {
    add(step, "step", "loss", 1.0 / static_cast<double>(step));
    if (step % 2 == 0) add(step, "evaluation", "accuracy", 0.1 * static_cast<double>(step));
    look();
  }
  EXPECT_EQ(reader_.read(run_.path()).metrics.at("train.loss").count, 5);
}

TEST_F(RunReaderOfTest, DropsSupersededSteps) {
  for (int64_t step = 1; step <= 5; ++step) add(step, "step", "loss", 9);
  look();
  begin(2);
  look();
  EXPECT_EQ(reader_.read(run_.path()).metrics.at("train.loss").count, 2);
  add(3, "step", "loss", 1);
  look();
  EXPECT_EQ(reader_.read(run_.path()).metrics.at("train.loss").last, 1);
}

TEST_F(RunReaderOfTest, InsertsLatePointsInOrder) {
  add(5, "step", "loss", 1);
  look();
  add(3, "late", "number", 7);
  add(4, "step", "loss", 2);
  look();
  EXPECT_EQ(reader_.read(run_.path()).metrics.at("train.loss").last, 1);
}

TEST_F(RunReaderOfTest, CountsDamagedLinesAndDetectsAReplacedLog) {
  add(1, "step", "loss", 1);
  look();
  std::ofstream(run_.log(), std::ios::app) << "damaged\n";
  look();
  add(2, "step", "loss", 2);
  look();
  EXPECT_EQ(reader_.read(run_.path()).trouble, "1 line of its log is damaged and skipped");
  fs::resize_file(run_.log(), 0);
  begin(0);
  add(1, "step", "other", 2);
  look();
}

}  // namespace
}  // namespace gallop::track
