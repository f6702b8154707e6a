#include "gallop/base/child_process.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "gallop/base/affinity.h"
#include "unit/base/error_of.h"
#include "unit/variable.h"

namespace gallop {
namespace {

ChildCommand shell(const std::string& script) {
  return {.program = "sh", .arguments = {"-c", script}, .keep_output = true};
}

// Its new parent may not have reaped it yet, so it may be a zombie for a while.
void expect_ends(pid_t id) {
  const std::string status = "/proc/" + std::to_string(id) + "/stat";
  for (;;) {  // If the process does not end, the test times out.
    std::ifstream file(status);
    std::string number, name, state;
    if (!(file >> number >> name >> state) || state == "Z") return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

TEST(ChildProcess, ReturnsOutputAndExitCode) {
  const ChildRun run = run_to_end(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(run.output, "out\nerr\n");
  EXPECT_EQ(run.cause, ChildRun::Cause::kItself);
  EXPECT_EQ(run.end.exit_code, 3);
  EXPECT_FALSE(run.end.is_good());
  EXPECT_FALSE(run.is_good());
  EXPECT_EQ(run.end.describe(), "ended with exit code 3");
  ChildProcess child(shell("exit 3"));
  EXPECT_EQ(child.wait().exit_code, 3);
  EXPECT_EQ(child.wait().exit_code, 3);
}

// The program ignores it, to get an error instead.
TEST(ChildProcess, IsEndedByALimitOfFileSizes) {
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  const ChildRun run = run_to_end(shell("kill -XFSZ $$"));
  std::signal(SIGXFSZ, before);
  EXPECT_EQ(run.end.signal, SIGXFSZ);
}

TEST(ChildProcess, ReportsTheSignalThatKilledIt) {
  ChildProcess child(shell("kill -SEGV $$"));
  const ChildEnd end = child.wait();
  EXPECT_EQ(end.signal, SIGSEGV);
  EXPECT_FALSE(end.is_good());
  EXPECT_EQ(end.describe(), "was killed by SIGSEGV");
}

TEST(ChildProcess, ExtendsTheEnvironment) {
  const Variable a("GALLOP_TEST_A", "ours"), b("GALLOP_TEST_B", "ours");
  ChildCommand command = shell("echo $GALLOP_TEST_A $GALLOP_TEST_B $GALLOP_TEST_C");
  command.variables = {{"GALLOP_TEST_B", "its own"}, {"GALLOP_TEST_C", "new"}};
  EXPECT_EQ(run_to_end(command).output, "ours its own new\n");
  command.without = {"GALLOP_TEST_A", "GALLOP_TEST_B"};
  EXPECT_EQ(run_to_end(command).output, "its own new\n");
}

TEST(ChildProcess, BlocksOnAFullPipe) {
  ChildCommand command = shell("head -c 300000 /dev/zero");
  command.unread_bytes = 512 << 10;
  ChildProcess child(command);
  expect_ends(child.id());
}

TEST(ChildProcess, ReadsItsStandardInput) {
  ChildCommand command = {.program = "sha1sum", .arguments = {}, .keep_output = true};
  // More than the capacity of a pipe.
  command.input = std::string(1 << 20, 'a');
  EXPECT_EQ(run_to_end(command).output, "454027d64e3b855735552d42230eea1cbd645fa0  -\n");
  command.input = "";
  EXPECT_EQ(run_to_end(command).output, "da39a3ee5e6b4b0d3255bfef95601890afd80709  -\n");
}

TEST(ChildProcess, RunsOnTheGivenCores) {
  ChildCommand command = shell("grep Cpus_allowed_list /proc/self/status");
  const int last = cores_given().back();
  command.cores = {last};
  EXPECT_EQ(run_to_end(command).output, "Cpus_allowed_list:\t" + std::to_string(last) + "\n");
}

TEST(ChildProcess, DoesNotInheritTheAffinityOfTheCreatingThread) {
  const ChildCommand command = shell("unset OMP_NUM_THREADS OMP_THREAD_LIMIT; nproc");
  run_on_core(cores_given().back());
  const std::string output = run_to_end(command).output;
  run_on_all_cores();
  EXPECT_EQ(output, std::to_string(cores_given().size()) + "\n");
}

TEST(ChildProcess, DoesNotInheritBlockedSignals) {
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

TEST(ChildProcess, IsKilledByItsDestructor) {
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

// Simulates a parent that dies.
TEST(ChildProcess, IsKilledWhenTheStartingThreadEnds) {
  pid_t id = -1;
  std::optional<ChildProcess> child;
  std::thread([&] {
    child.emplace(shell("exec sleep 100"));
    id = child->id();
  }).join();
  EXPECT_EQ(child->wait().signal, SIGKILL);
}

TEST(ChildProcess, ReportsWhyItCannotBeStarted) {
  EXPECT_EQ(error_of([] { ChildProcess({.program = "/nowhere/at-all", .arguments = {}}); }),
            "cannot start /nowhere/at-all: No such file or directory");
  ChildCommand command = shell("true");
  command.cores = {CPU_SETSIZE - 1};
  EXPECT_EQ(error_of([&] { ChildProcess child(command); }), "cannot start sh: Invalid argument");
}

TEST(ChildProcess, CanBeKilledWithItsBackgroundProcesses) {
  ChildCommand command = shell("sleep 100 > /dev/null 2>&1 & echo $!");
  command.keep_output = command.own_group = true;
  ChildProcess child(command);
  std::string left(32, '\0');
  const ssize_t size = read(child.output(), left.data(), left.size());
  ASSERT_GT(size, 0);
  while (!child.has_ended()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  child.send(SIGTERM);  // To no process any more.
  child.kill_all();
  EXPECT_TRUE(child.wait().is_good());
  expect_ends(std::stoi(left));
}

TEST(ChildProcess, CanBeKilledWithItsGroupByAHandler) {
  ChildCommand command = shell("trap '' TERM INT; sleep 100 & echo $!; wait");
  command.own_group = true;
  ChildProcess child(command), other(shell("exec sleep 100"));
  std::string left(32, '\0');
  ASSERT_GT(read(child.output(), left.data(), left.size()), 0);
  kill_groups();
  EXPECT_EQ(child.wait().signal, SIGKILL);
  expect_ends(std::stoi(left));
  EXPECT_FALSE(other.has_ended());  // Ends with this process.
  kill_groups();                    // There is no process any more.
}

// Ends like a killed process, without any cleanup.
TEST(ChildProcess, DiesWithItsGroupWhenItsParentIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t maker = fork();
  if (maker == 0) {
    ChildCommand command =
        shell("trap '' TERM INT HUP; sleep 100 > /dev/null 2>&1 & echo $!; wait");
    command.own_group = command.with_warden = true;
    ChildProcess child(command);
    std::array<char, 32> left{};
    const ssize_t size = read(child.output(), left.data(), left.size());
    const ssize_t written =
        write(ends[1], left.data(), static_cast<size_t>(std::max<ssize_t>(size, 0)));
    raise(written > 0 ? SIGKILL : SIGABRT);
  }
  std::string left(32, '\0');
  const ssize_t size = read(ends[0], left.data(), left.size());
  int status = 0;
  waitpid(maker, &status, 0);
  close(ends[0]);
  close(ends[1]);
  ASSERT_GT(size, 0);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  expect_ends(std::stoi(left));
}

TEST(ChildProcess, DoesNotKillItsGroupAfterItHasEnded) {
  ChildCommand command = shell("sleep 100 > /dev/null 2>&1 & echo $!");
  command.own_group = command.with_warden = true;
  pid_t left = -1;
  {
    ChildProcess child(command);
    std::string text(32, '\0');
    ASSERT_GT(read(child.output(), text.data(), text.size()), 0);
    left = std::stoi(text);
    EXPECT_TRUE(child.wait().is_good());
  }
  EXPECT_EQ(kill(left, SIGKILL), 0);
  expect_ends(left);
}

TEST(RunToEnd, LimitsTheStoredOutput) {
  const ChildRun run =
      run_to_end(shell("head -c 1000000 /dev/zero | tr '\\0' x"), {.output_bytes = 70000});
  EXPECT_TRUE(run.is_good());
  EXPECT_EQ(run.output, std::string(70000, 'x'));
}

TEST(RunToEnd, KillsTheProcessAndItsChildrenAtTheTimeout) {
  ChildCommand command = shell("sleep 100 & echo $!; wait");
  command.own_group = true;
  const ChildRun run = run_to_end(command, {.seconds = 0.3});
  EXPECT_EQ(run.cause, ChildRun::Cause::kTimedOut);
  EXPECT_FALSE(run.is_good());
  EXPECT_EQ(run.end.signal, SIGKILL);
  expect_ends(std::stoi(run.output));
}

TEST(RunToEnd, KillsProcessesLeftByTheLeader) {
  ChildCommand command = shell("sleep 100 & echo $!");
  command.own_group = true;
  const ChildRun run = run_to_end(command, {.seconds = 0.3});
  EXPECT_EQ(run.cause, ChildRun::Cause::kTimedOut);
  expect_ends(std::stoi(run.output));
}

TEST(RunToEnd, StopsOnRequest) {
  std::atomic<bool> stop = false;
  std::thread asks([&] { stop = true; });
  const ChildRun run = run_to_end(shell("exec sleep 100"), {.stop = [&] { return stop.load(); }});
  asks.join();
  EXPECT_EQ(run.cause, ChildRun::Cause::kStopped);
  EXPECT_EQ(run.end.signal, SIGKILL);
}

// Stops between fork and exec on request of the test.
std::atomic<bool> stops_children{false};
void stop_this_process() {
  if (stops_children) raise(SIGSTOP);
}

TEST(ChildProcess, DoesNotBlockItsParentWhenStoppedBeforeExec) {
  pthread_atfork(nullptr, nullptr, stop_this_process);
  ChildCommand command = shell("exit 3");
  command.own_group = true;
  command.awaits_start = false;
  stops_children = true;
  ChildProcess child(command), killed(command);
  stops_children = false;
  for (const ChildProcess* one : {&child, &killed}) {
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(one->id()), &info, WSTOPPED | WNOWAIT), 0);
    EXPECT_EQ(info.si_code, CLD_STOPPED);
  }
  EXPECT_FALSE(child.poll());
  killed.kill_all();
  EXPECT_EQ(killed.wait().signal, SIGKILL);
  child.send(SIGCONT);
  EXPECT_EQ(child.wait().exit_code, 3);
}

TEST(ChildProcess, ReportsALaterFailureToStart) {
  ChildCommand command{.program = "/nowhere/at-all", .awaits_start = false};
  ChildProcess child(command);
  EXPECT_EQ(error_of([&] { child.wait(); }),
            "cannot start /nowhere/at-all: No such file or directory");
  const ChildProcess ended(command);  // Its destructor throws nothing.
}

}  // namespace
}  // namespace gallop
