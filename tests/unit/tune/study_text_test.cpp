#include "gallop/tune/study_text.h"

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/fold_text.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

// With three trials that have ended and twenty that run.
TestStudy busy_study() {
  TestStudy test(Space({{"x", Interval{}}}, {}), 1, 0);
  for (int i = 0; i < 3; ++i) test.complete(test.start({0.5}), 1);
  for (int i = 0; i < 20; ++i) test.start({0.25});
  return test;
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

TEST(TrialsTable, ShowsTheLastTrialsAndAllRunningOnes) {
  const auto lines = lines_of(trials_table(busy_study().study, 2, 100));
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines[1].substr(0, 14), "    3  running");
  EXPECT_EQ(lines[20].substr(0, 14), "   22  running");
}

TEST(TrialsTable, ReportsTheNumberOfOmittedTrials) {
  const auto lines = lines_of(trials_table(busy_study().study, 2, 100, 5));
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[1], "  ...  16 more");
  EXPECT_EQ(lines[2].substr(0, 14), "   19  running");
  EXPECT_EQ(lines[5].substr(0, 14), "   22  running");
  EXPECT_EQ(lines_of(trials_table(busy_study().study, 2, 100, 20)).size(), 21u);
  EXPECT_EQ(lines_of(trials_table(busy_study().study, 2, 100, 1)).back(), "  ...  20 more");
}

// One metric with a limit on memory of 4, and a grid of two points.
TestStudy grid_study() {
  StudySettings settings =
      TestStudy::settings_of(Space({{"x", Choices{{"1", "2"}}}}, {}), 1, /*limits=*/1);
  settings.limits[0].most = 4;
  settings.sampler = R"({"name":"grid"})";
  return TestStudy(settings);
}

TEST(ResultText, ReportsExceededLimits) {
  TestStudy test = grid_study();
  test.end(test.start({0}), TrialState::kComplete, {0.5}, {-1});
  test.end(test.start({1}), TrialState::kComplete, {0.25}, {2});
  EXPECT_EQ(result_text(test.study, trial_at(test.study, 0)), "loss 0.5");
  EXPECT_EQ(result_text(test.study, trial_at(test.study, 1)), "loss 0.25 (memory 6, above 4)");
  EXPECT_NE(trials_table(test.study, 2, 100).find("loss 0.25 (memory 6, above 4)"),
            std::string::npos);
}

TEST(FoldsText, HasTheMeanOfEachPointOfTheOtherParameters) {
  TestStudy test(Space({{"data.fold", Choices{{"0", "1", "2"}}}, {"x", Choices{{"1", "2"}}}}, {}),
                 1, 0);
  EXPECT_EQ(folds_text(test.study), "");
  for (const double fold : {0.0, 1.0, 2.0}) {
    test.complete(test.start({fold, 0}), 0.5 + 0.1 * fold);
    if (fold < 2) test.complete(test.start({fold, 1}), 0.3);
  }
  test.start({2, 1});
  EXPECT_EQ(folds_text(test.study),
            "loss 0.3 ± 0 over 2 folds: x=2\nloss 0.6 ± 0.1 over 3 folds: x=1\n");
  EXPECT_EQ(folds_text(busy_study().study), "");
}

TEST(StandingText, ReportsAnExhaustedGrid) {
  TestStudy test = grid_study();
  EXPECT_EQ(standing_text(test.study, TuneRegistries()), "0 of 100 trials finished");
  test.end(test.start({0}), TrialState::kComplete, {0.5}, {0});
  EXPECT_EQ(standing_text(test.study, TuneRegistries()), "1 of 100 trials finished");
  const int64_t last = test.start({1});
  EXPECT_EQ(standing_text(test.study, TuneRegistries()), "1 of 100 trials finished, 1 running");
  test.end(last, TrialState::kComplete, {0.5}, {0});
  EXPECT_EQ(standing_text(test.study, TuneRegistries()),
            "2 of 100 trials finished; all points of the grid have been tried");
}

TEST(PrunedText, ReportsTheReason) {
  StudySettings settings = TestStudy::settings_of(Space({{"x", Interval{}}}, {}));
  TestStudy reported(settings);
  EXPECT_EQ(pruned_text(reported.study), "");
  const int64_t trial = reported.start({0.5});
  reported.report(trial, 3, 0.25);
  reported.end(trial, TrialState::kPruned, {});
  EXPECT_EQ(pruned_text(reported.study),
            "no trial is complete; the best pruned trials, by their last report:\n"
            "  loss 0.25 at step 3, trial 0: x=0.5\n");
  reported.complete(reported.start({0.5}), 1);
  EXPECT_EQ(pruned_text(reported.study), "");

  settings.objectives[0].metric = "seconds to accuracy 0.9";
  TestStudy missed(settings);
  missed.end(missed.start({0.5}), TrialState::kPruned, {});
  missed.end(missed.start({0.25}), TrialState::kPruned, {});
  EXPECT_EQ(pruned_text(missed.study), "none of 2 trials has reached accuracy 0.9\n");
}

TEST(ValuesText, HasNanAndInfinitiesAsReported) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const bool maximize : {false, true}) {
    StudySettings settings = TestStudy::settings_of(Space({{"x", Interval{}}}, {}));
    settings.objectives[0].maximize = maximize;
    TestStudy test(settings);
    for (const auto& [value, text] : {std::pair<double, std::string>{kNan, "nan"},
                                      {-kNan, "nan"},
                                      {kInfinity, "inf"},
                                      {-kInfinity, "-inf"}}) {
      const int64_t number = test.start({0.5});
      test.report(number, 1, maximize ? -value : value);
      test.end(number, TrialState::kFailed, {});
      const Trial& trial = trial_at(test.study, number);
      EXPECT_TRUE(std::isnan(trial.reports[0].loss));
      EXPECT_EQ(values_text(test.study, trial), "loss " + text);
      EXPECT_NE(study_csv(test.study).find(fmt::format("\n{},failed,{},0.5", number, text)),
                std::string::npos);
      const auto object = trial_object(test.study, trial);
      EXPECT_EQ(object.at("values").at("loss").get<std::string>(), text);
      EXPECT_EQ(object.at("reports").at(0).at(1).get<std::string>(), text);
    }
  }
}

TEST(StudyCsv, HasUniqueColumnNames) {
  StudySettings settings = TestStudy::settings_of(
      Space({{"loss", Interval{}}, {"seconds", Interval{}}, {"x", Interval{}}}, {}), 1, 1);
  settings.limits[0].metric = "loss";
  const std::string csv = study_csv(Study(settings));
  EXPECT_EQ(csv.substr(0, csv.find('\r')),
            "trial,state,loss,limit.loss,parameter.loss,parameter.seconds,x,seconds,attempts,"
            "worker,message");
}

}  // namespace
}  // namespace gallop::tune
