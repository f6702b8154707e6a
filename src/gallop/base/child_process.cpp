#include "gallop/base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/affinity.h"
#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

constexpr int kPollMilliseconds = 50;

// Process groups that have not been reaped, 0 for free entries, for the signal handler. Groups
// beyond this number are not killed by it.
std::array<std::atomic<pid_t>, 4096> groups{};
static_assert(std::atomic<pid_t>::is_always_lock_free);

void replace_group(pid_t old, pid_t one) {
  for (auto& group : groups) {
    pid_t expected = old;
    if (group.compare_exchange_strong(expected, one)) return;
  }
}

[[noreturn]] void fail(const std::string& what, int error) {
  throw DeviceError(fmt::format("{}: {}", what, std::generic_category().message(error)));
}

struct Pipe {
  FileDescriptor read_end, write_end;
};

// Close-on-exec, so that no other child keeps its ends open.
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail("cannot create a pipe", errno);
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

// An anonymous file, positioned at its beginning.
FileDescriptor file_of(std::string_view text) {
  FileDescriptor file(memfd_create("input", MFD_CLOEXEC));
  if (!file) fail("cannot create a file in memory", errno);
  while (!text.empty()) {
    const ssize_t size = write(file.get(), text.data(), text.size());
    if (size < 0 && errno != EINTR) fail("cannot write a file in memory", errno);
    if (size > 0) text.remove_prefix(static_cast<size_t>(size));
  }
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

std::vector<std::string> environment_of(const ChildCommand& command) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const auto& without = command.without;
    if (command.variables.contains(name)) continue;
    if (std::find(without.begin(), without.end(), name) == without.end()) all.push_back(text);
  }
  for (const auto& [name, value] : command.variables) {
    all.push_back(fmt::format("{}={}", name, value));
  }
  return all;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Everything that a child needs, prepared before fork(): until exec() only system calls are safe,
// as other threads may hold locks.
struct Prepared {
  std::string program;
  std::vector<std::string> words, environment;
  std::vector<char*> word_pointers, environment_pointers;
  cpu_set_t cores{};
  bool has_own_cores = false, own_group = false;
  FileDescriptor input;
  int output = -1;
  pid_t parent = getpid();

  explicit Prepared(const ChildCommand& command)
      : program(command.program), words(command.arguments), environment(environment_of(command)) {
    const bool is_ours = program == ChildCommand().program;
    words.insert(words.begin(), is_ours ? program_invocation_short_name : program);
    word_pointers = pointers_to(words);
    environment_pointers = pointers_to(environment);
    if (command.input) input = file_of(*command.input);
    own_group = command.own_group;
    has_own_cores = !command.cores.empty();
    // Not those of a thread that is pinned to one core.
    for (const int core : has_own_cores ? command.cores : cores_given()) {
      CPU_SET(core, &cores);
    }
  }

  // Returns only on failure, with the reason in errno.
  void become() {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return;
    if (getppid() != parent) _exit(static_cast<int>(ExitCode::kInternal));
    if (own_group && setpgid(0, 0) != 0) return;
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGXFSZ, SIG_DFL);  // This program ignores it.
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0 && has_own_cores) return;
    if (input && dup2(input.get(), STDIN_FILENO) < 0) return;
    if (output >= 0 && (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)) return;
    execvpe(program.c_str(), word_pointers.data(), environment_pointers.data());
  }
};

std::string cannot_start(const std::string& program) {
  return fmt::format("cannot start {}", printable(program));
}

// Reads available output, waiting for at most this long; false at its end.
bool read_some(int from, size_t most, std::string& text) {
  pollfd waiting{.fd = from, .events = POLLIN, .revents = 0};
  if (poll(&waiting, 1, kPollMilliseconds) <= 0) return true;
  std::array<char, 4096> part{};
  const ssize_t size = read(from, part.data(), part.size());
  if (size < 0) return errno == EINTR;
  text.append(part.data(), std::min(static_cast<size_t>(size), most - text.size()));
  return size > 0;
}

}  // namespace

std::string ChildEnd::describe() const {
  if (signal == 0) return fmt::format("ended with exit code {}", exit_code);
  const char* const name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("was killed by SIG{}", name)
                         : fmt::format("was killed by signal {}", signal);
}

ChildProcess::ChildProcess(const ChildCommand& command)
    : own_group_(command.own_group), program_(command.program) {
  Prepared prepared(command);
  Pipe output, failure = make_pipe();
  if (command.keep_output) {
    output = make_pipe();
    if (command.unread_bytes > 0) fcntl(output.read_end.get(), F_SETPIPE_SZ, command.unread_bytes);
    prepared.output = output.write_end.get();
  }
  id_ = fork();
  if (id_ < 0) fail(cannot_start(program_), errno);
  if (id_ == 0) {
    prepared.become();
    const int error = errno;
    // If this fails as well, the exit code indicates it.
    static_cast<void>(!write(failure.write_end.get(), &error, sizeof(error)));
    _exit(static_cast<int>(ExitCode::kDevice));
  }
  if (own_group_) {
    setpgid(id_, id_);  // The child may not have done so yet; it will do the same.
    replace_group(0, id_);
  }
  output_ = std::move(output.read_end);
  failure_ = std::move(failure.read_end);
  failure.write_end = FileDescriptor();
  if (command.awaits_start) check_start();
  if (command.with_warden) start_warden();
}

// Waits until the child's exec or end.
void ChildProcess::check_start() {
  if (!failure_) return;
  const FileDescriptor failure = std::move(failure_);
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(failure.get(), &error, sizeof(error));
  } while (size < 0 && errno == EINTR);
  if (size != sizeof(error)) return;
  wait();
  fail(cannot_start(program_), error);
}

void ChildProcess::start_warden() {
  try {
    reaper_ = std::make_unique<ProcessGroupReaper>(id_);
  } catch (...) {
    kill_all();
    wait();
    throw;
  }
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : id_(std::exchange(other.id_, -1)),
      own_group_(other.own_group_),
      output_(std::move(other.output_)),
      program_(std::move(other.program_)),
      failure_(std::move(other.failure_)),
      reaper_(std::move(other.reaper_)),
      end_(std::exchange(other.end_, std::nullopt)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(own_group_, other.own_group_);
  std::swap(output_, other.output_);
  std::swap(program_, other.program_);
  std::swap(failure_, other.failure_);
  std::swap(reaper_, other.reaper_);
  std::swap(end_, other.end_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (id_ < 0 || end_) return;
  failure_ = FileDescriptor();  // A destructor must not throw what wait() would.
  kill_all();
  wait();
}

void ChildProcess::send(int signal) {
  if (!has_ended()) kill(id_, signal);
}

void ChildProcess::kill_all() {
  // As long as the end was not reaped, the ids cannot be reused.
  if (!end_) kill(own_group_ ? -id_ : id_, SIGKILL);
}

bool ChildProcess::has_ended() const {
  // Leaves the status, and with it the id, to poll().
  siginfo_t info{};
  return id_ < 0 || end_ ||
         (waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT | WNOHANG) == 0 &&
          info.si_pid == id_);
}

std::optional<ChildEnd> ChildProcess::poll() {
  if (!end_ && has_ended()) reap();
  if (end_) check_start();
  return end_;
}

void ChildProcess::reap() {
  // From then on its id may be reused.
  reaper_.reset();
  if (own_group_) replace_group(id_, 0);
  int status = 0;
  waitpid(id_, &status, 0);
  end_ = WIFSIGNALED(status) ? ChildEnd{.signal = WTERMSIG(status)}
                             : ChildEnd{.exit_code = WEXITSTATUS(status)};
}

void kill_groups() {
  for (const auto& group : groups) {
    if (const pid_t id = group.load(); id > 0) kill(-id, SIGKILL);
  }
}

ChildEnd ChildProcess::wait() {
  // Leaves the status for poll().
  siginfo_t info{};
  while (!end_ && waitid(P_PID, static_cast<id_t>(id_), &info, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  return *poll();
}

ChildRun run_to_end(ChildCommand command, const RunLimits& limits) {
  command.keep_output = true;
  const double started = monotonic_seconds();
  ChildProcess child(command);
  ChildRun run;
  do {
    if (limits.stop && limits.stop()) run.cause = ChildRun::Cause::kStopped;
    if (monotonic_seconds() - started > limits.seconds) run.cause = ChildRun::Cause::kTimedOut;
  } while (run.cause == ChildRun::Cause::kItself &&
           read_some(child.output(), limits.output_bytes, run.output));
  if (run.cause != ChildRun::Cause::kItself) child.kill_all();
  run.end = child.wait();
  return run;
}

}  // namespace gallop
