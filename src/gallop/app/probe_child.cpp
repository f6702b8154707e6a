#include "gallop/app/probe_child.h"

#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// What a probe tells stands in a line of its own behind one of these.
constexpr const char* kResult = "probe result: ";
constexpr const char* kNoMemory = "probe without memory: ";
constexpr int kPollMilliseconds = 50;

[[noreturn]] void fail(const std::string& what, int error) {
  throw DeviceError(fmt::format("{}: {}", what, std::generic_category().message(error)));
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() {
    if (pipe(ends.data()) != 0) fail("cannot make a pipe", errno);
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void close_end(size_t end) {
    if (ends[end] >= 0) close(ends[end]);
    ends[end] = -1;
  }
};

pid_t start(std::vector<std::string> words, const Pipe& output) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, output.ends[1], 1);
  posix_spawn_file_actions_adddup2(&files, output.ends[1], 2);
  posix_spawn_file_actions_addclose(&files, output.ends[0]);
  words.insert(words.begin(), "gallop");
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  pid_t child = -1;
  const int error =
      posix_spawn(&child, "/proc/self/exe", &files, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) fail("cannot start a process to probe in", error);
  return child;
}

// All that it prints, to its end; true where a stop request ended it.
bool read_all(int file, pid_t child, const StopRequest& stop, std::string& text) {
  bool stopped = false;
  for (;;) {
    if (stop.requested() && !stopped) {
      kill(child, SIGKILL);
      stopped = true;
    }
    pollfd waits{.fd = file, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kPollMilliseconds) <= 0) continue;
    std::array<char, 4096> part{};
    const ssize_t size = read(file, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return stopped;
    text.append(part.data(), static_cast<size_t>(size));
  }
}

// Behind the mark, to the end of the line.
bool find_told(const std::string& text, const std::string& mark, std::string& told) {
  const size_t at = text.rfind(mark);
  if (at == std::string::npos) return false;
  const size_t begin = at + mark.size();
  told = text.substr(begin, text.find('\n', begin) - begin);
  return true;
}

}  // namespace

ProbeResult run_probe(const std::vector<std::string>& arguments, const StopRequest& stop) {
  Pipe output;
  const pid_t child = start(arguments, output);
  output.close_end(1);
  std::string text;
  const bool stopped = read_all(output.ends[0], child, stop, text);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ProbeResult result;
  if (stopped) {
    result.kind = ProbeResult::Kind::kStopped;
  } else if (find_told(text, kNoMemory, result.text)) {
    result.kind = ProbeResult::Kind::kNoMemory;
  } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    result.kind = ProbeResult::Kind::kNoMemory;
    result.text = "the system ended the process";
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::kStopped)) {
    result.kind = ProbeResult::Kind::kStopped;
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
             !find_told(text, kResult, result.text)) {
    const bool is_known = WIFEXITED(status) && WEXITSTATUS(status) >= 2 && WEXITSTATUS(status) <= 4;
    while (text.ends_with('\n')) text.pop_back();
    constexpr std::string_view kName = "gallop: ";
    const size_t line = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
    std::string last = text.substr(line);
    if (last.starts_with(kName)) last.erase(0, kName.size());
    throw Error(is_known ? static_cast<ExitCode>(WEXITSTATUS(status)) : ExitCode::kDevice,
                is_known ? last
                         : fmt::format("a process that was to probe a batch ended with {} {}. {}",
                                       WIFSIGNALED(status) ? "signal" : "exit code",
                                       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                                       printable(last)));
  }
  return result;
}

void become_probe() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::ofstream("/proc/self/oom_score_adj") << 1000;
}

void tell_result(const std::string& text) {
  fmt::print("{}{}\n", kResult, text);
  std::fflush(stdout);
}

void tell_no_memory(const std::string& why) {
  const std::string line = fmt::format("\n{}{}\n", kNoMemory, why);
  // Whether it arrives or not: the exit code does.
  static_cast<void>(!write(STDOUT_FILENO, line.data(), line.size()));
  _exit(static_cast<int>(ExitCode::kDevice));
}

}  // namespace gallop::app
