#include "gallop/launch/child_process.h"

#include <sched.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/affinity.h"
#include "unit/base/error_of.h"

namespace gallop::launch {
namespace {

ChildCommand shell(const std::string& script) {
  return {.program = "sh", .arguments = {"-c", script}, .keep_output = true};
}

std::string all_output(ChildProcess& child) {
  std::string text;
  char part[256];
  while (true) {
    const ssize_t size = read(child.output(), part, sizeof(part));
    if (size <= 0) return text;
    text.append(part, static_cast<size_t>(size));
  }
}

TEST(ChildProcess, TellsWhatItPrintedAndHowItEnded) {
  ChildProcess child(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(all_output(child), "out\nerr\n");
  const ChildEnd end = child.wait();
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.words(), "ended with exit code 3");
  EXPECT_EQ(child.wait().exit_code, 3);
}

TEST(ChildProcess, TellsTheSignalThatKilledIt) {
  ChildProcess child(shell("kill -SEGV $$"));
  const ChildEnd end = child.wait();
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.words(), "was killed by SIGSEGV");
}

TEST(ChildProcess, HasItsOwnVariablesBesideOurs) {
  setenv("GALLOP_TEST_A", "ours", 1);
  setenv("GALLOP_TEST_B", "ours", 1);
  ChildCommand command = shell("echo $GALLOP_TEST_A $GALLOP_TEST_B $GALLOP_TEST_C");
  command.variables = {{"GALLOP_TEST_B", "its own"}, {"GALLOP_TEST_C", "new"}};
  ChildProcess child(command);
  EXPECT_EQ(all_output(child), "ours its own new\n");
}

TEST(ChildProcess, ReadsWhatItIsGiven) {
  ChildCommand command = {.program = "sha1sum", .arguments = {}, .keep_output = true};
  // More than a pipe holds.
  command.input = std::string(1 << 20, 'a');
  ChildProcess long_text(command);
  EXPECT_EQ(all_output(long_text), "454027d64e3b855735552d42230eea1cbd645fa0  -\n");
  command.input = "";
  ChildProcess nothing(command);
  EXPECT_EQ(all_output(nothing), "da39a3ee5e6b4b0d3255bfef95601890afd80709  -\n");
}

TEST(ChildProcess, RunsOnItsCores) {
  ChildCommand command = shell("grep Cpus_allowed_list /proc/self/status");
  const int last = cores_given().back();
  command.cores = {last};
  ChildProcess child(command);
  EXPECT_EQ(all_output(child), "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

TEST(ChildProcess, RunsOnAllCoresWhereverItsMakerIsKept) {
  const ChildCommand command = shell("unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc");
  run_on_core(cores_given().back());
  ChildProcess child(command);
  run_on_all_cores();
  EXPECT_EQ(all_output(child), std::to_string(cores_given().size()) + "\n");
}

TEST(ChildProcess, TakesSignalsWhateverOursBlocks) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ChildProcess child(shell("echo ready; exec sleep 100"));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  char letter;
  ASSERT_EQ(read(child.output(), &letter, 1), 1);
  EXPECT_FALSE(child.poll());
  child.send(SIGTERM);
  EXPECT_EQ(child.wait().signal, SIGTERM);
  child.send(SIGTERM);
}

TEST(ChildProcess, EndsWithItsObject) {
  pid_t id = -1;
  {
    ChildProcess child(shell("exec sleep 100"));
    id = child.id();
    ChildProcess moved(std::move(child));
    EXPECT_EQ(moved.id(), id);
    EXPECT_EQ(kill(id, 0), 0);
  }
  EXPECT_NE(kill(id, 0), 0);
}

// What stands for a parent that dies.
TEST(ChildProcess, EndsWithTheThreadThatStartedIt) {
  pid_t id = -1;
  std::optional<ChildProcess> child;
  std::thread([&] {
    child.emplace(shell("exec sleep 100"));
    id = child->id();
  }).join();
  EXPECT_EQ(child->wait().signal, SIGKILL);
}

TEST(ChildProcess, SaysWhyItCannotBeStarted) {
  EXPECT_EQ(error_of([] { ChildProcess({.program = "/nowhere/at-all", .arguments = {}}); }),
            "cannot start /nowhere/at-all: No such file or directory");
  ChildCommand command = shell("true");
  command.cores = {CPU_SETSIZE - 1};
  EXPECT_EQ(error_of([&] { ChildProcess child(command); }), "cannot start sh: Invalid argument");
}

}  // namespace
}  // namespace gallop::launch
