#include "gallop/tune/study_text.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/tune/told_study.h"

namespace gallop::tune {
namespace {

// With three trials that have ended and twenty that run.
ToldStudy busy_study() {
  ToldStudy told(Space({{"x", Interval{}}}, {}), 1, 0);
  for (int i = 0; i < 3; ++i) told.complete(told.start({0.5}), 1);
  for (int i = 0; i < 20; ++i) told.start({0.25});
  return told;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(TrialsTable, HasTheLastTrialsAndAllThatRun) {
  const auto lines = lines_of(trials_table(busy_study().study, 2, 100));
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines[1].substr(0, 14), "    3  running");
  EXPECT_EQ(lines[20].substr(0, 14), "   22  running");
}

TEST(TrialsTable, SaysHowManyItLeavesOut) {
  const auto lines = lines_of(trials_table(busy_study().study, 2, 100, 5));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[1], "  ...  16 more");
  EXPECT_EQ(lines[2].substr(0, 14), "   19  running");
  EXPECT_EQ(lines[5].substr(0, 14), "   22  running");
  EXPECT_EQ(lines_of(trials_table(busy_study().study, 2, 100, 20)).size(), 21u);
  EXPECT_EQ(lines_of(trials_table(busy_study().study, 2, 100, 1)).back(), "  ...  20 more");
}

}  // namespace
}  // namespace gallop::tune
