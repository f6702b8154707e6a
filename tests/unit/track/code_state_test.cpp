#include "gallop/track/code_state.h"

#include <gtest/gtest.h>

#include "gallop/base/child_process.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::track {
namespace {

class CodeStates : public testing::Test {
 protected:
  void SetUp() override {
    if (!run("git --version").is_good()) GTEST_SKIP() << "no git";
    good("git init -q -b main . && git config user.email a@b && git config user.name c");
  }
  ChildRun run(const std::string& line) const {
    return run_to_end({.program = "sh",
                       .arguments = {"-c", "cd \"$1\" && " + line, "sh", path().string()},
                       .keep_output = true});
  }
  void good(const std::string& line) const {
    const ChildRun end = run(line);
    ASSERT_TRUE(end.is_good()) << end.output;
  }
  std::string output(const std::string& line) const {
    const std::string text = run(line).output;
    return text.substr(0, text.find('\n'));
  }
  const fs::path& path() const { return folder_.path(); }

  TemporaryFolder folder_{fs::temp_directory_path(), "gallop-code-"};
};

TEST_F(CodeStates, RecordCommitBranchAndPatch) {
  good("mkdir src && echo one > src/a.cpp && echo > b.cpp && git add . && git commit -qm first");
  // Also for a subfolder.
  auto state = read_code_state(path() / "src");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->commit, output("git rev-parse HEAD"));
  EXPECT_EQ(state->branch, "main");
  EXPECT_EQ(state->folder, path());
  EXPECT_EQ(state->patch, "");

  good("echo two > src/a.cpp; git rm -q b.cpp; printf '\\0\\1' > c.bin; git add c.bin");
  state = read_code_state(path() / "src");
  EXPECT_EQ(state->patch_bytes, static_cast<int64_t>(state->patch.size()));
  // Applying the patch to the commit restores the files.
  write_file_atomically(path() / "code.patch", state->patch);
  good("git stash -q && git apply code.patch");
  EXPECT_EQ(output("cat src/a.cpp"), "two");
  EXPECT_FALSE(fs::exists(path() / "b.cpp"));
  EXPECT_EQ(read_file(path() / "c.bin"), std::string("\0\1", 2));
}

TEST_F(CodeStates, OmitSecrets) {
  good("echo > .env && echo > tokenizer.cpp && git add . && git commit -qm first");
  good("git remote add origin https://me:hunter2@example.org/code.git");
  good("echo PASSWORD=hunter2 > .env; echo 1 > tokenizer.cpp");
  const auto state = read_code_state(path());
  EXPECT_EQ(state->remote, "https://example.org/code.git");
  EXPECT_EQ(state->patch.find("hunter2"), std::string::npos);
  EXPECT_NE(state->patch.find("tokenizer.cpp"), std::string::npos);
  EXPECT_EQ(state->left_out, std::vector<std::string>{".env"});
}

TEST_F(CodeStates, StartNoOtherPrograms) {
  good("echo > a.cpp && git add . && git commit -qm first && echo 1 > a.cpp");
  good("git config diff.external 'touch started' && git config core.fsmonitor 'touch started'");
  EXPECT_NE(read_code_state(path())->patch, "");
  EXPECT_FALSE(fs::exists(path() / "started"));
}

TEST_F(CodeStates, HandleAMissingCommitOrRepository) {
  EXPECT_EQ(read_code_state(path())->commit, "");
  EXPECT_EQ(read_code_state(path())->branch, "main");
  fs::remove_all(path() / ".git");
  EXPECT_FALSE(read_code_state(path()));
  EXPECT_FALSE(read_code_state(path() / "gone"));
}

TEST_F(CodeStates, OmitALongPatch) {
  good("echo > a.txt && git add . && git commit -qm first");
  write_file_atomically(path() / "a.txt", std::string(5 << 20, 'x'));
  const auto state = read_code_state(path());
  EXPECT_EQ(state->patch, "");
  EXPECT_GT(state->patch_bytes, 5 << 20);
}

}  // namespace
}  // namespace gallop::track
