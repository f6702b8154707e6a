#include "gallop/track/run_folder.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <optional>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/base/error_of.h"

namespace gallop::track {
namespace {

RunInfo example() {
  return {.version = "0.1.0",
          .commit = "abc",
          .hardware = {.cpu_model = "cpu",
                       .cores = 2,
                       .memory_bytes = 1 << 30,
                       .instruction_sets = "avx2",
                       .host = "h"},
          .command_line = {"gallop", "train", "db.password=hunter2", "--api-token", "t0", "lr=1"},
          .data_files = {{.path = "train.gz", .bytes = 5, .checksum = "ff"},
                         {.path = "test.gz", .bytes = 6}},
          .started = "2026-03-01T12:00:00Z"};
}

class Runs : public testing::Test {
 protected:
  Runs() { fs::remove_all(runs_); }
  ~Runs() override { fs::remove_all(runs_); }

  RunFolder numbered(const std::string& stem) {
    return RunFolder::create_numbered(runs_, stem, "a: 1\n", example());
  }

  fs::path runs_ = fs::temp_directory_path() / fmt::format("gallop-runs-{}", getpid());
};

TEST_F(Runs, StoreRecipeAndOrigin) {
  const RunFolder run = RunFolder::create(runs_, "night", "a: 1\n", example());
  EXPECT_EQ(run.path(), runs_ / "night");
  EXPECT_EQ(run.name(), "night");
  EXPECT_EQ(run.log(), runs_ / "night" / "metrics.log");
  EXPECT_EQ(run.checkpoints(), runs_ / "night" / "checkpoints");
  EXPECT_EQ(RunFolder::read_recipe(run.path()), "a: 1\n");
  const RunInfo info = RunFolder::read_info(run.path());
  EXPECT_EQ(info.version, "0.1.0");
  EXPECT_EQ(info.commit, "abc");
  EXPECT_EQ(info.hardware.cores, 2);
  EXPECT_EQ(info.hardware.host, "h");
  EXPECT_EQ(info.started, "2026-03-01T12:00:00Z");
  ASSERT_EQ(info.data_files.size(), 2u);
  EXPECT_EQ(info.data_files[0].checksum, "ff");
  EXPECT_EQ(info.data_files[1].bytes, 6);
  EXPECT_EQ(info.command_line, (std::vector<std::string>{"gallop", "train", "db.password=***",
                                                         "--api-token", "***", "lr=1"}));
}

TEST_F(Runs, AreNumberedAfterTheHighest) {
  EXPECT_EQ(numbered("cifar10").name(), "cifar10-1");
  EXPECT_EQ(numbered("cifar10").name(), "cifar10-2");
  EXPECT_EQ(numbered("cifar").name(), "cifar-1");
  fs::create_directories(runs_ / "cifar-7x");
  fs::create_directories(runs_ / "cifar-9");
  EXPECT_EQ(numbered("cifar").name(), "cifar-10");
}

TEST_F(Runs, CreatedConcurrentlyGetUniqueNames) {
  constexpr int kProcesses = 8;
  make_folders(runs_);
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int status = 1;
      try {
        for (int j = 0; j < 5; ++j) numbered("r");
        status = 0;
      } catch (const Error&) {
        status = 1;
      }
      _exit(status);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(runs_)) {
    EXPECT_TRUE(RunFolder::is_run(entry.path()));
    names.insert(entry.path().filename());
  }
  EXPECT_EQ(names.size(), kProcesses * 5u);
}

TEST_F(Runs, AreTrainedByOneProcessAtATime) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const RunFolder run = RunFolder::create(runs_, "r", "a: 1\n", example());
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  const std::string error = error_of([&] { RunFolder::open(runs_ / "r"); });
  EXPECT_NE(error.find(fmt::format("r: process {} on {} is training this run", child, host)),
            std::string::npos)
      << error;
  EXPECT_THROW(RunFolder::create(runs_, "r", "a: 1\n", example()), UsageError);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
  EXPECT_EQ(RunFolder::open(runs_ / "r").name(), "r") << "the lock dies with its process";
}

// A child before its exec holds the lock of its parent, which may be killed before it.
TEST_F(Runs, WaitForAChildOfTheProcessThatTrainedThem) {
  auto run = std::make_optional(RunFolder::create(runs_, "r", "a: 1\n", example()));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    usleep(20'000);  // A small fraction of the second that they wait.
    _exit(0);
  }
  run.reset();
  EXPECT_EQ(RunFolder::open(runs_ / "r").name(), "r");
  waitpid(child, nullptr, 0);
}

TEST_F(Runs, AreContinuedButNotCreatedTwice) {
  { const RunFolder run = RunFolder::create(runs_, "r", "a: 1\n", example()); }
  EXPECT_NE(error_of([&] {
              RunFolder::create(runs_, "r", "b: 2\n", example());
            }).find("a run of this name already exists"),
            std::string::npos);
  EXPECT_EQ(RunFolder::read_recipe(runs_ / "r"), "a: 1\n");
  EXPECT_NE(error_of([&] { RunFolder::open(runs_ / "none"); }).find("none: not a run"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(runs_ / "none"));
}

// A resume is first validated, and must leave no trace if it is rejected.
TEST_F(Runs, AreLockedWithoutWritesUntilTheyAreClaimed) {
  { const RunFolder run = RunFolder::create(runs_, "r", "a: 1\n", example()); }
  const fs::path lock = runs_ / "r" / "lock";
  std::ofstream(lock) << "process 1 on gone";
  const auto time = fs::last_write_time(lock) - std::chrono::hours(1);
  fs::last_write_time(lock, time);
  {
    RunFolder run = RunFolder::open(runs_ / "r");
    EXPECT_TRUE(RunFolder::is_trained(run.path()));
    EXPECT_EQ(fs::last_write_time(lock), time);
    EXPECT_EQ(FileLock::owner_of(lock), "process 1 on gone");
    run.claim();
    EXPECT_NE(FileLock::owner_of(lock).find(fmt::format("process {} on ", getpid())),
              std::string::npos);
  }
  fs::remove(lock);
  RunFolder run = RunFolder::open(runs_ / "r");
  EXPECT_FALSE(fs::exists(lock));
  run.claim();
  EXPECT_TRUE(RunFolder::is_trained(run.path()));
}

TEST_F(Runs, TakeOverAFolderThatNeverBecameARun) {
  fs::create_directories(runs_ / "r");
  std::ofstream(runs_ / "r" / "lock") << "process 1 on gone";
  EXPECT_THROW(RunFolder::open(runs_ / "r"), UsageError);
  EXPECT_EQ(RunFolder::create(runs_, "r", "a: 1\n", example()).name(), "r");
}

TEST_F(Runs, HavePlainNames) {
  for (const std::string name : {"", ".", "..", ".hidden", "a/b", "/etc", "a\n"}) {
    EXPECT_THROW(RunFolder::create(runs_, name, "", example()), UsageError) << name;
    EXPECT_THROW(numbered(name), UsageError) << name;
  }
  EXPECT_THROW(RunFolder::create(runs_, std::string(300, 'a'), "", example()), UsageError);
}

// A run of another user could name a file that only this user can read.
TEST_F(Runs, HaveNoLinksInPlaceOfTheirRecipe) {
  const fs::path secret = runs_ / "secret", run = runs_ / "linked";
  fs::create_directories(run);
  write_file_atomically(secret, "secret: 1");
  fs::create_symlink(secret, run / "recipe.yaml");
  EXPECT_FALSE(RunFolder::is_run(run));
}

TEST_F(Runs, RequireAWritableFolder) {
  std::ofstream(runs_.string()) << "a file";
  EXPECT_THROW(numbered("r"), DeviceError);
  EXPECT_THROW(RunFolder::create(runs_ / "deeper", "r", "", example()), DeviceError);
}

TEST_F(Runs, ReportADamagedDescription) {
  const RunFolder run = RunFolder::create(runs_, "r", "a: 1\n", example());
  for (const char* text : {"", "{}", "[]", "{\"version\": 1}"}) {
    std::ofstream(run.path() / "run.json") << text;
    EXPECT_NE(
        error_of([&] { RunFolder::read_info(run.path()); }).find("run.json: not a run description"),
        std::string::npos);
  }
}

TEST(UtcNow, HasIsoFormat) {
  EXPECT_EQ(utc_now().size(), std::string("2026-03-01T12:00:00Z").size());
}

}  // namespace
}  // namespace gallop::track
