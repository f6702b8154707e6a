#include "gallop/compile/codegen/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>

#include "gallop/base/file.h"

namespace gallop::compile {

namespace {

using Clock = std::chrono::steady_clock;

std::string reason(int error) { return std::generic_category().message(error); }

/// posix_spawn's settings, freed at the end.
struct SpawnSettings {
  posix_spawn_file_actions_t files{};
  posix_spawnattr_t attributes{};
  SpawnSettings() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
};

// A group of its own, so that its children end with it, and no signal blocked as our threads do.
int spawn(const std::vector<std::string>& command, int output, pid_t& child) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&settings.files, output, 1);
  posix_spawn_file_actions_adddup2(&settings.files, output, 2);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&settings.attributes, &none);
  posix_spawnattr_setsigdefault(&settings.attributes, &all);
  posix_spawnattr_setpgroup(&settings.attributes, 0);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  return posix_spawnp(&child, words[0], &settings.files, &settings.attributes, words.data(),
                      environ);
}

// Reads until the other end is closed. False where the time is over or `stop` is set.
bool read_output(int pipe, Clock::time_point deadline, const std::atomic<bool>& stop,
                 std::string& output) {
  constexpr size_t kMost = 65536;
  char buffer[4096];
  while (!stop && Clock::now() < deadline) {
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 50) <= 0) continue;
    const ssize_t got = read(pipe, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got < 0 && errno != EINTR && errno != EAGAIN) return true;
    if (got > 0) output.append(buffer, std::min(static_cast<size_t>(got), kMost - output.size()));
  }
  return false;
}

}  // namespace

ChildResult run_child(const std::vector<std::string>& command, double timeout_seconds,
                      const std::atomic<bool>& stop) {
  ChildResult result;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    result.output = reason(errno);
    return result;
  }
  const FileDescriptor from(ends[0]);
  FileDescriptor to(ends[1]);
  pid_t child = 0;
  if (const int error = spawn(command, to.get(), child); error != 0) {
    result.output = reason(error);
    return result;
  }
  to = FileDescriptor();
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                           std::chrono::duration<double>(timeout_seconds));
  const bool ended = read_output(from.get(), deadline, stop, result.output);
  if (!ended) kill(-child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    result.end = stop ? ChildResult::End::kStopped : ChildResult::End::kTimedOut;
  } else {
    result.end = ChildResult::End::kExited;
    result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return result;
}

}  // namespace gallop::compile
