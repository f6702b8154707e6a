// Tests that pass, fail, crash and hang, for tests/tools/run_suite_test and run_tests_test.
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace {

/// Whether MADE_UP names this behavior; the tests pass otherwise.
bool asked(const std::string& behavior) {
  const char* words = std::getenv("MADE_UP");
  return words != nullptr && std::string(words).find(behavior) != std::string::npos;
}

int process_before = 0;

}  // namespace

TEST(MadeUp, Passes) {
  process_before = getpid();
  if (const char* log = std::getenv("MADE_UP_LOG")) std::ofstream(log, std::ios::app) << "passes\n";
}

TEST(MadeUp, RunsInTheSameProcess) {
  if (asked("process")) {
    EXPECT_EQ(process_before, getpid()) << "this is another process";
  }
}

TEST(MadeUp, Fails) {
  if (asked("fail")) {
    EXPECT_EQ(1 + 1, 3) << "the message of the failure";
  }
}

TEST(MadeUp, Skips) { GTEST_SKIP() << "for want of a reason"; }

TEST(MadeUp, PrintsWithoutNewLine) {
  std::printf("half a line");
  std::printf("[       OK ] MadeUp.Other (0 ms)");
}

TEST(MadeUp, Crashes) {
  std::printf("about to crash\n");
  std::fflush(stdout);
  if (asked("crash")) {
    std::signal(SIGSEGV, SIG_DFL);  // Sanitizers have a handler.
    std::raise(SIGSEGV);
  }
  if (asked("exit")) std::exit(0);
}

TEST(MadeUp, Hangs) {
  if (!asked("hang")) return;
  std::printf("about to hang\n");
  std::fflush(stdout);
  if (asked("child")) {
    // A child that keeps the output open.
    if (fork() == 0) {
      while (true) pause();
    }
  }
  while (true) pause();
}

TEST(MadeUp, FailsOnce) {
  const char* file = std::getenv("MADE_UP_ONCE");
  if (file == nullptr || std::filesystem::exists(file)) return;
  std::ofstream(file) << "failed";
  FAIL() << "the first failure";
}

TEST(MadeUp, LeavesNothingBehind) {
  if (!asked("leave")) return;
  setenv("MADE_UP_LEFT", "a value", 1);
  std::signal(SIGUSR1, SIG_IGN);
  umask(0123);
}

TEST(MadeUp, DISABLED_Never) { FAIL(); }

class Odd : public testing::TestWithParam<std::string> {};

TEST_P(Odd, Parameters) {
  if (asked("fail")) {
    EXPECT_EQ(GetParam(), "none of them");
  }
}

INSTANTIATE_TEST_SUITE_P(Some, Odd, testing::Values("a, where b (3 ms)", "two\nlines"));

INSTANTIATE_TEST_SUITE_P(Long, Odd, testing::Values("long"));

class SetUp : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (asked("setup")) std::raise(SIGABRT);
  }
};

TEST_F(SetUp, IsDone) {}

class Late : public testing::Environment {
  void TearDown() override {
    if (asked("late")) std::exit(9);
  }
};

[[maybe_unused]] const testing::Environment* const kLate =
    testing::AddGlobalTestEnvironment(new Late);
