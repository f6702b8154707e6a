#include "gallop/track/evaluation_report.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

class EvaluationReports : public testing::Test {
 protected:
  EvaluationReports() { make_folders(evaluation_report_of(run())); }
  const fs::path& run() const { return folder_.path(); }

  EvaluationReport report_{.step = 30,
                           .part = "test",
                           .metrics = {{"accuracy", 0.8}, {"roc-auc", std::nullopt}},
                           .figures = {{"roc-curve", "ROC curves", R"({"curves":[1,2]})"}},
                           .classes = {"cat", "dog"},
                           .counts = {{5, 1}, {2, 7}},
                           .mistakes = {{.image = "00.png",
                                         .width = 4,
                                         .height = 3,
                                         .channels = 1,
                                         .truth = 1,
                                         .guess = 0,
                                         .probability = 0.9}}};

 private:
  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-report-"};
};

TEST_F(EvaluationReports, RoundTrip) {
  EXPECT_FALSE(read_evaluation_report(run()));
  write_evaluation_report(evaluation_report_of(run()), report_);
  const auto read = read_evaluation_report(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 30);
  EXPECT_EQ(read->part, "test");
  EXPECT_EQ(read->classes, report_.classes);
  EXPECT_EQ(read->counts, report_.counts);
  ASSERT_EQ(read->mistakes.size(), 1U);
  EXPECT_EQ(read->mistakes[0].image, "00.png");
  EXPECT_EQ(read->mistakes[0].truth, 1);
  EXPECT_EQ(read->mistakes[0].probability, 0.9);
  ASSERT_EQ(read->figures.size(), 1U);
  EXPECT_EQ(read->figures[0].name, "roc-curve");
  EXPECT_EQ(read->figures[0].title, "ROC curves");
  const std::string text = read_file(evaluation_report_of(run()) / "report.json");
  EXPECT_NE(text.find(R"("metrics":{"accuracy":0.8,"roc-auc":null})"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("file":"roc-curve.svg","data":{"curves":[1,2]})"), std::string::npos);
}

TEST_F(EvaluationReports, HaveOverlaysWithTheColorsOfTheirClasses) {
  using Group = EvaluationReport::Overlay::Group;
  report_.overlays = {{.group = Group::kFirst,
                       .sample = 0,
                       .iou = std::nullopt,
                       .image = "00.png",
                       .truth = "01.png",
                       .prediction = "02.png",
                       .differences = "03.png"},
                      {.group = Group::kLowest,
                       .sample = 7,
                       .iou = 0.25,
                       .image = "04.png",
                       .truth = "05.png",
                       .prediction = "06.png",
                       .differences = "07.png"}};
  report_.colors = {"#e69f00", "#56b4e9"};
  write_evaluation_report(evaluation_report_of(run()), report_);
  const auto read = read_evaluation_report(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->colors, report_.colors);
  ASSERT_EQ(read->overlays.size(), 2U);
  EXPECT_EQ(read->overlays[0].group, Group::kFirst);
  EXPECT_FALSE(read->overlays[0].iou);
  EXPECT_EQ(read->overlays[1].group, Group::kLowest);
  EXPECT_EQ(read->overlays[1].sample, 7);
  EXPECT_EQ(read->overlays[1].iou, 0.25);
  EXPECT_EQ(read->overlays[1].differences, "07.png");
  const auto refuse = [&](const EvaluationReport& bad) {
    write_evaluation_report(evaluation_report_of(run()), bad);
    EXPECT_THROW(read_evaluation_report(run()), DataError);
  };
  EvaluationReport bad = report_;
  bad.overlays[1].prediction = "../06.png";
  refuse(bad);
  bad = report_;
  bad.colors.pop_back();
  refuse(bad);
  bad = report_;
  bad.colors[0] = "#red;x:";
  refuse(bad);
}

TEST_F(EvaluationReports, ReadOlderVersionsWithoutFigures) {
  write_file_atomically(evaluation_report_of(run()) / "report.json",
                        R"({"step":3,"part":"test","classes":["a"],"counts":[[5]],"mistakes":[]})");
  const auto read = read_evaluation_report(run());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->figures.empty());
  EXPECT_EQ(read->counts[0][0], 5);
}

TEST_F(EvaluationReports, ReplaceOnlyReportFolders) {
  const fs::path folder = evaluation_report_of(run());
  EXPECT_TRUE(is_report_folder(folder));
  EXPECT_TRUE(is_report_folder(folder / "nothing"));
  for (const char* name : {"report.json", "report.html", "roc-curve.svg", "00.png"}) {
    write_file_atomically(folder / name, "");
  }
  EXPECT_TRUE(is_report_folder(folder));
  write_file_atomically(folder / "thesis.tex", "");
  EXPECT_FALSE(is_report_folder(folder));
  write_file_atomically(folder / "notes", "text");
  EXPECT_FALSE(is_report_folder(folder / "notes"));
  clear_report_folder(folder);
  EXPECT_TRUE(fs::exists(folder / "thesis.tex"));
  for (const char* name : {"report.json", "report.html", "roc-curve.svg", "00.png"}) {
    EXPECT_FALSE(fs::exists(folder / name)) << name;
  }
  EXPECT_FALSE(is_report_folder(folder));  // It has no report.
}

// Reports may be untrusted: the files that they name are shown and opened.
TEST_F(EvaluationReports, RejectInvalidFileNames) {
  EvaluationReport bad = report_;
  for (const char* image : {"../../secret.png", "00.png/../../secret.png", ".png", "00", ""}) {
    bad.mistakes[0].image = image;
    write_evaluation_report(evaluation_report_of(run()), bad);
    EXPECT_THROW(read_evaluation_report(run()), DataError) << image;
  }
  bad = report_;
  bad.mistakes[0].guess = 2;
  write_evaluation_report(evaluation_report_of(run()), bad);
  EXPECT_THROW(read_evaluation_report(run()), DataError);
  bad = report_;
  for (const char* figure : {"../roc-curve", "roc.curve", ""}) {
    bad.figures[0].name = figure;
    write_evaluation_report(evaluation_report_of(run()), bad);
    EXPECT_THROW(read_evaluation_report(run()), DataError) << figure;
  }
  bad = report_;
  bad.counts.pop_back();
  write_evaluation_report(evaluation_report_of(run()), bad);
  EXPECT_THROW(read_evaluation_report(run()), DataError);
  write_file_atomically(evaluation_report_of(run()) / "report.json", "{\"step\": 1");
  EXPECT_THROW(read_evaluation_report(run()), DataError);
}

}  // namespace
}  // namespace gallop::track
