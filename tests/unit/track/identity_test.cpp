#include "gallop/track/identity.h"

#include <gtest/gtest.h>

#include "unit/base/error_of.h"
#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

class Identities : public testing::Test {
 protected:
  void SetUp() override {
    run_ = runs_.add("a", "{}\n", {0.5});
    make_folders(data());
    write_file_atomically(data() / "1.jpg", "abc");
  }
  fs::path data() const { return runs_.path() / ".images"; }
  IdentityQuestion question(int64_t step = 0) const {
    return {.step = step,
            .version = "1.0",
            .folder = runs_.path(),
            .data = {data().string()},
            .cache = runs_.path() / ".cache",
            .listings = listings_of(runs_.path()),
            .limits = {}};
  }

  RunsOfTest runs_;
  fs::path run_;
};

TEST_F(Identities, RoundTrip) {
  Identity wanted = read_identity(question());
  wanted.code = CodeState{.folder = "/code",
                          .commit = "1234",
                          .branch = "main",
                          .remote = "https://example.org",
                          .patch = "a patch\n",
                          .left_out = {".env"},
                          .patch_bytes = 8};
  add_identity(run_, wanted);
  const auto found = read_identities(run_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].version, "1.0");
  EXPECT_EQ(found[0].program, wanted.program);
  EXPECT_EQ(found[0].program.size(), 32u);
  EXPECT_EQ(found[0].code, wanted.code);
  ASSERT_EQ(found[0].data.size(), 1u);
  EXPECT_EQ(found[0].data[0].path, data().string());
  EXPECT_EQ(found[0].data[0].files, 1);
  EXPECT_EQ(found[0].data[0].bytes, 3);
  // The listing of the data is beside the runs.
  const fs::path listing = listings_of(runs_.path()) / (found[0].data[0].checksum + ".txt");
  EXPECT_EQ(parse_listing(read_file(listing), "").files[0].name, "1.jpg");
}

TEST_F(Identities, HaveTheFilesThatATableNames) {
  write_file_atomically(data() / "other.jpg", "abcd");
  IdentityQuestion named = question();
  named.named_data = {{.folder = data().string(), .names = {"1.jpg"}}};
  add_identity(run_, read_identity(named));
  const auto found = read_identities(run_);
  ASSERT_EQ(found[0].data.size(), 2u);
  EXPECT_FALSE(found[0].data[0].is_named);
  EXPECT_EQ(found[0].data[0].files, 2);
  EXPECT_TRUE(found[0].data[1].is_named);
  EXPECT_EQ(found[0].data[1].files, 1);
  EXPECT_EQ(found[0].data[1].bytes, 3);
}

TEST_F(Identities, NamePlugins) {
  const fs::path plugin = runs_.path() / "libmine.so";
  write_file_atomically(plugin, "one");
  IdentityQuestion with_plugin = question();
  with_plugin.plugins = {plugin.string()};
  add_identity(run_, read_identity(with_plugin));
  write_file_atomically(plugin, "another");
  add_identity(run_, read_identity(with_plugin));
  const auto found = read_identities(run_);
  ASSERT_EQ(found.size(), 2u);
  ASSERT_EQ(found[0].plugins.size(), 1u);
  EXPECT_EQ(found[0].plugins[0].path, plugin.string());
  EXPECT_EQ(found[0].plugins[0].checksum.size(), 32u);
  EXPECT_NE(found[0].plugins[0].checksum, found[1].plugins[0].checksum);
  EXPECT_TRUE(read_identity(question()).plugins.empty());
}

TEST_F(Identities, AreAppendedAfterChanges) {
  add_identity(run_, read_identity(question()));
  add_identity(run_, read_identity(question(10)));
  EXPECT_EQ(read_identities(run_).size(), 1u);
  write_file_atomically(data() / "1.jpg", "abd");
  add_identity(run_, read_identity(question(20)));
  const auto found = read_identities(run_);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[1].step, 20);
  EXPECT_NE(found[0].data[0].checksum, found[1].data[0].checksum);
}

TEST_F(Identities, RejectDamagedFiles) {
  EXPECT_TRUE(read_identities(run_).empty());
  write_file_atomically(run_ / "identity.json", "[{\"step\": 0}]");
  EXPECT_NE(error_of([&] { read_identities(run_); }).find("not a run identity"), std::string::npos);
  add_identity(run_, read_identity(question()));
  EXPECT_EQ(read_identities(run_).size(), 1u);
  // A name from a file cannot refer to another folder.
  std::string text = read_file(run_ / "identity.json");
  text.replace(text.find("\"data\""), 0,
               R"("code": {"folder": "", "commit": "", "branch": "", "remote": "",)"
               R"( "patch": "../../secret", "patch_bytes": 0, "left_out": []}, )");
  write_file_atomically(run_ / "identity.json", text);
  EXPECT_NE(error_of([&] { read_identities(run_); }).find((run_ / "secret").string()),
            std::string::npos);
}

TEST_F(Identities, AreRecordedDuringATraining) {
  IdentityRecorder recorder(run_, question());
  EXPECT_EQ(recorder.finish(), "");
  EXPECT_EQ(read_identities(run_).size(), 1u);
}

TEST_F(Identities, ReportWhyTheyAreUnknown) {
  IdentityQuestion wrong = question();
  wrong.data = {"/none"};
  IdentityRecorder recorder(run_, wrong);
  EXPECT_NE(recorder.finish().find("/none: cannot be read"), std::string::npos);
  EXPECT_TRUE(read_identities(run_).empty());
}

}  // namespace
}  // namespace gallop::track
