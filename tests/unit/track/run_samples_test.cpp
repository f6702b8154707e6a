#include "gallop/track/run_samples.h"

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

class SamplesOfARun : public testing::Test {
 protected:
  SamplesOfARun() { make_folders(run_samples_of(run())); }
  const fs::path& run() const { return folder_.path(); }

  RunSamples samples_{.augmented_by = {"random-horizontal-flip", "random-crop"},
                      .samples = {{.label = "cat", .image = "00.png", .before = "01.png"},
                                  {.label = "", .text = "once\nupon"}}};

 private:
  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-samples-"};
};

TEST_F(SamplesOfARun, RoundTrip) {
  EXPECT_FALSE(read_run_samples(run()));
  write_run_samples(run(), samples_);
  const auto read = read_run_samples(run());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->augmented_by, samples_.augmented_by);
  ASSERT_EQ(read->samples.size(), 2U);
  EXPECT_EQ(read->samples[0].label, "cat");
  EXPECT_EQ(read->samples[0].image, "00.png");
  EXPECT_EQ(read->samples[0].before, "01.png");
  EXPECT_EQ(read->samples[1].image, "");
  EXPECT_EQ(read->samples[1].text, "once\nupon");
}

// A text of bytes may be truncated within a character.
TEST_F(SamplesOfARun, MayHaveInvalidUtf8) {
  samples_.samples[1].text = "\xe2\x82 and \xff";
  write_run_samples(run(), samples_);
  EXPECT_EQ(read_run_samples(run())->samples[1].text, "\xef\xbf\xbd and \xef\xbf\xbd");
}

// They may be untrusted: the files that they name are shown and opened.
TEST_F(SamplesOfARun, RejectOtherFileNames) {
  for (const char* name : {"../../secret.png", "00.png/../../secret.png", ".png", "00", "x.png"}) {
    RunSamples bad = samples_;
    bad.samples[0].image = name;
    write_run_samples(run(), bad);
    EXPECT_THROW(read_run_samples(run()), DataError) << name;
    bad = samples_;
    bad.samples[0].before = name;
    write_run_samples(run(), bad);
    EXPECT_THROW(read_run_samples(run()), DataError) << name;
  }
  write_file_atomically(run_samples_of(run()) / "samples.json", "{\"samples\": [");
  EXPECT_THROW(read_run_samples(run()), DataError);
}

}  // namespace
}  // namespace gallop::track
