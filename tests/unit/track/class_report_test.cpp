#include "gallop/track/class_report.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

class ClassReports : public testing::Test {
 protected:
  ClassReports() { make_folders(class_report_of(run())); }
  const fs::path& run() const { return folder_.path(); }

  ClassReport report_{.step = 30,
                      .part = "test",
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

TEST_F(ClassReports, AreReadAsTheyWereWritten) {
  EXPECT_FALSE(read_class_report(run()));
  write_class_report(run(), report_);
  const auto read = read_class_report(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 30);
  EXPECT_EQ(read->part, "test");
  EXPECT_EQ(read->classes, report_.classes);
  EXPECT_EQ(read->counts, report_.counts);
  ASSERT_EQ(read->mistakes.size(), 1U);
  EXPECT_EQ(read->mistakes[0].image, "00.png");
  EXPECT_EQ(read->mistakes[0].truth, 1);
  EXPECT_EQ(read->mistakes[0].probability, 0.9);
}

// They may come from anywhere: what they name is shown and opened.
TEST_F(ClassReports, AreRefusedWhereTheyNameWhatIsNotThere) {
  ClassReport bad = report_;
  for (const char* image : {"../../secret.png", "00.png/../../secret.png", ".png", "00", ""}) {
    bad.mistakes[0].image = image;
    write_class_report(run(), bad);
    EXPECT_THROW(read_class_report(run()), DataError) << image;
  }
  bad = report_;
  bad.mistakes[0].guess = 2;
  write_class_report(run(), bad);
  EXPECT_THROW(read_class_report(run()), DataError);
  bad = report_;
  bad.counts.pop_back();
  write_class_report(run(), bad);
  EXPECT_THROW(read_class_report(run()), DataError);
  write_file_atomically(class_report_of(run()) / "report.json", "{\"step\": 1");
  EXPECT_THROW(read_class_report(run()), DataError);
}

}  // namespace
}  // namespace gallop::track
