#include "gallop/track/run_profiles.h"

#include <gtest/gtest.h>

#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

using Steps = std::vector<int64_t>;

class RunProfiles : public testing::Test {
 protected:
  TemporaryFolder folder{fs::temp_directory_path(), "gallop-profiles-"};
  fs::path run = folder.path();
  fs::path profiles = run / "profiles";
};

TEST_F(RunProfiles, ArePublishedWithTheirTraces) {
  EXPECT_EQ(run_profiles_of(run), Steps());
  EXPECT_FALSE(read_run_profile(run, 20));
  write_run_profile(run, 100, "{}", {"trace 0", "trace 1"});
  write_run_profile(run, 20, "{\"a\": 1}", {"trace"});
  EXPECT_EQ(run_profiles_of(run), (Steps{20, 100}));
  EXPECT_EQ(read_run_profile(run, 20), "{\"a\": 1}");
  EXPECT_EQ(read_run_trace(run, 100, 1), "trace 1");
  EXPECT_FALSE(read_run_trace(run, 100, 2));
  EXPECT_FALSE(read_run_trace(run, 21, 0));
}

TEST_F(RunProfiles, AreNoLinks) {
  write_run_profile(run, 20, "{}", {"trace"});
  fs::rename(profiles, run / "elsewhere");
  fs::create_symlink(run / "elsewhere", profiles);
  EXPECT_FALSE(read_run_profile(run, 20));
  EXPECT_FALSE(read_run_trace(run, 20, 0));
}

TEST_F(RunProfiles, AreReplacedAsAWhole) {
  write_run_profile(run, 100, "old", {"trace 0", "trace 1"});
  write_run_profile(run, 100, "new", {"other trace"});
  EXPECT_EQ(run_profiles_of(run), Steps{100});
  EXPECT_EQ(read_run_profile(run, 100), "new");
  EXPECT_EQ(read_run_trace(run, 100, 0), "other trace");
  EXPECT_FALSE(read_run_trace(run, 100, 1));
}

TEST_F(RunProfiles, OldestOnesAreRemoved) {
  keep_run_profiles(run, 2);  // Without any.
  for (const int64_t step : {1000, 200, 30}) write_run_profile(run, step, "{}", {"trace"});
  keep_run_profiles(run, 3);
  EXPECT_EQ(run_profiles_of(run), (Steps{30, 200, 1000}));
  keep_run_profiles(run, 2);
  EXPECT_EQ(run_profiles_of(run), (Steps{200, 1000}));
  EXPECT_FALSE(fs::exists(profiles / "step-30"));
  EXPECT_TRUE(fs::exists(profiles / "step-200" / "rank-0.json.gz"));
  keep_run_profiles(run, 1);
  EXPECT_EQ(run_profiles_of(run), Steps{1000});
}

TEST_F(RunProfiles, LaterAndUnfinishedOnesAreRemoved) {
  remove_run_profiles_after(run, 0);  // Without any.
  for (const int64_t step : {100, 200, 300}) write_run_profile(run, step, "{}", {"trace"});
  make_folders(profiles / "step-150");  // A process was killed.
  write_file_atomically(profiles / "step-250.json.tmp-12", "{");
  write_file_atomically(profiles / "notes.txt", "of a user");
  write_file_atomically(profiles / "step-x.json", "of a user");
  EXPECT_EQ(run_profiles_of(run), (Steps{100, 200, 300}));
  remove_run_profiles_after(run, 200);
  EXPECT_EQ(run_profiles_of(run), (Steps{100, 200}));
  EXPECT_FALSE(fs::exists(profiles / "step-150"));
  EXPECT_FALSE(fs::exists(profiles / "step-300"));
  EXPECT_FALSE(fs::exists(profiles / "step-250.json.tmp-12"));
  EXPECT_TRUE(fs::exists(profiles / "step-200" / "rank-0.json.gz"));
  EXPECT_TRUE(fs::exists(profiles / "notes.txt"));
  EXPECT_TRUE(fs::exists(profiles / "step-x.json"));
}

}  // namespace
}  // namespace gallop::track
