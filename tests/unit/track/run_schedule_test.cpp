#include "gallop/track/run_schedule.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

class RunSchedules : public testing::Test {
 protected:
  RunSchedules() {
    schedule_.steps = 40;
    schedule_.steps_per_epoch = 10;
    schedule_.at = {1, 20, 40};
    schedule_.lines.push_back(
        {.metric = "train.lr", .schedule = "linear", .values = {0.1, 0.05, 1.0 / 3}});
    schedule_.lines.push_back({.metric = "train.momentum",
                               .schedule = "",
                               .follows_evaluations = true,
                               .values = {0.9, 0.5, std::numeric_limits<double>::quiet_NaN()}});
  }
  const fs::path& run() const { return folder_.path(); }

  // The error names the file.
  void expect_damaged(const std::string& content) {
    write_file_atomically(run() / "schedule.json", content);
    try {
      read_run_schedule(run());
      ADD_FAILURE() << content;
    } catch (const DataError& error) {
      EXPECT_NE(std::string(error.what()).find("schedule.json: "), std::string::npos);
    }
  }

  RunSchedule schedule_;

 private:
  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-schedule-"};
};

TEST_F(RunSchedules, RoundTrip) {
  EXPECT_FALSE(read_run_schedule(run()));
  write_run_schedule(run(), schedule_);
  const auto read = read_run_schedule(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->steps, 40);
  EXPECT_EQ(read->steps_per_epoch, 10);
  EXPECT_EQ(read->at, schedule_.at);
  ASSERT_EQ(read->lines.size(), 2U);
  EXPECT_EQ(read->lines[0].metric, "train.lr");
  EXPECT_EQ(read->lines[0].schedule, "linear");
  EXPECT_FALSE(read->lines[0].follows_evaluations);
  EXPECT_EQ(read->lines[0].values, schedule_.lines[0].values);
  EXPECT_TRUE(read->lines[1].follows_evaluations);
  EXPECT_TRUE(std::isnan(read->lines[1].values[2]));
}

TEST_F(RunSchedules, RejectDamagedFiles) {
  expect_damaged("{\"steps\": 40");
  expect_damaged("[]");
  expect_damaged("{\"steps\": 1, \"steps_per_epoch\": 1, \"at\": [1], \"lines\": [3]}");
  expect_damaged("{\"steps\": 2, \"steps_per_epoch\": 1, \"at\": [2, 1], \"lines\": []}");
  schedule_.lines[1].values.pop_back();
  write_run_schedule(run(), schedule_);
  EXPECT_THROW(read_run_schedule(run()), DataError);
}

}  // namespace
}  // namespace gallop::track
