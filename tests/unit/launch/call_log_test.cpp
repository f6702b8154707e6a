#include "gallop/launch/call_log.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"

namespace gallop::launch {
namespace {

TEST(CallLog, KeepsTheLastCalls) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-calls-");
  CallLog log(folder.path(), 3);
  EXPECT_TRUE(read_calls(folder.path(), 3).empty());
  for (int64_t number = 1; number <= CallLog::kCalls + 5; ++number) {
    log.begin(number, "step " + std::to_string(number), "sum of 1.0 MiB");
    log.end(number, Call::State::kDone);
  }
  log.begin(CallLog::kCalls + 6, std::string(100, 'p'), std::string(100, 'w'));
  const auto calls = read_calls(folder.path(), 3);
  ASSERT_EQ(calls.size(), CallLog::kCalls);
  EXPECT_EQ(calls.front().number, 7);
  EXPECT_STREQ(calls.front().place, "step 7");
  EXPECT_STREQ(calls.front().what, "sum of 1.0 MiB");
  EXPECT_EQ(calls.front().state, Call::State::kDone);
  EXPECT_GE(calls.front().ended, calls.front().began);
  EXPECT_EQ(calls.back().number, 70);
  EXPECT_EQ(calls.back().state, Call::State::kUnderWay);
  EXPECT_EQ(std::string(calls.back().place), std::string(31, 'p')) << "what is too long is cut";
  log.end(3, Call::State::kFailed);  // Already overwritten.
  EXPECT_EQ(read_calls(folder.path(), 3).front().state, Call::State::kDone);
  EXPECT_TRUE(read_calls(folder.path(), 0).empty());
}

TEST(CallLog, OutlivesTheProcess) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-calls-");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    CallLog log(folder.path(), 0);
    log.begin(1, "start", "broadcast of 8 bytes");
    raise(SIGKILL);
  }
  waitpid(child, nullptr, 0);
  const auto calls = read_calls(folder.path(), 0);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_STREQ(calls[0].what, "broadcast of 8 bytes");
}

TEST(CallLog, ReadsATruncatedLog) {
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-calls-");
  std::ofstream(folder.path() / "0") << "x";
  EXPECT_TRUE(read_calls(folder.path(), 0).empty());
}

TEST(CallLog, RequiresItsFolder) { EXPECT_THROW(CallLog("/nowhere", 0), DeviceError); }

}  // namespace
}  // namespace gallop::launch
