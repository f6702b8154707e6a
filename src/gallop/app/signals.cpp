#include "gallop/app/signals.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <string_view>
#include <utility>

#include "gallop/app/programs.h"
#include "gallop/base/child_process.h"
#include "gallop/base/error.h"
#include "gallop/base/standard_streams.h"

namespace gallop::app {

namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, SIGPIPE, SIGXCPU};
constexpr int64_t kSameRequestMilliseconds = 1000;

// Global, for the signal handler.
std::atomic<StopRequest*> target{nullptr};
std::atomic<const StartUpEnd*> start_up_end{nullptr};
std::atomic<bool> says_stopping{true}, is_starting{false}, is_ending{false};

// When the first signal of the launcher or of another process arrived; 0: none yet.
std::atomic<int64_t> asked_by_starter{0}, asked_by_other{0};

void write_all(int file, std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = write(file, text.data(), text.size());
}

void say(std::string_view text) { write_all(STDERR_FILENO, text); }

int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

// A closed pipe raises SIGPIPE at each write, and the limit of CPU time SIGXCPU every second.
bool is_repeated(int signal) { return signal == SIGPIPE || signal == SIGXCPU; }

// Process managers often signal twice, as a terminal or Slurm signals all processes and a launcher
// its own; only a second Ctrl-C is the user's.
bool is_same_request(const StopRequest& stop, int signal, int64_t asked) {
  if (is_repeated(signal)) return true;
  const bool again = signal == SIGINT && stop.signal() == SIGINT;
  return !again && (asked == 0 || milliseconds_now() - asked < kSameRequestMilliseconds);
}

[[noreturn]] void end_at_once() {
  kill_groups();
  _exit(static_cast<int>(ExitCode::kStopped));
}

// Returns if start-up has ended.
void end_start_up(int signal) {
  is_ending.store(true);
  if (!is_starting.load()) {
    is_ending.store(false);
    return;
  }
  const bool says = says_stopping.load() && (signal != SIGPIPE || !is_reader_gone(STDERR_FILENO));
  if (says) say("\ngallop: stopped before there was anything to save\n");
  if (const StartUpEnd* const end = start_up_end.load()) end->write(says);
  end_at_once();
}

// Blocks destructors of the handler's state while another thread's handler ends the process.
void wait_if_ending() {
  while (is_ending.load()) sched_yield();
}

const char* stopping_text(int signal) {
  switch (signal) {
    case SIGPIPE:
      return "\ngallop: the output was closed by its reader; stopping after this step and saving\n";
    case SIGXCPU:
      return "\ngallop: the limit of CPU time is reached; stopping after this step and saving\n";
    default:
      return "\ngallop: stopping after this step and saving (a second signal ends at once)\n";
  }
}

// Sockets and pipes to other processes raise SIGPIPE as well; their writers handle EPIPE.
bool is_of_output(int signal) {
  return signal != SIGPIPE || is_reader_gone(STDOUT_FILENO) || is_reader_gone(STDERR_FILENO);
}

void handle(int signal, siginfo_t* info, void* /*context*/) {
  StopRequest* stop = target.load();
  if (stop == nullptr || !is_of_output(signal)) return;
  end_start_up(signal);
  const bool is_of_starter = info->si_code == SI_USER && info->si_pid == getppid();
  auto& asked = is_of_starter ? asked_by_starter : asked_by_other;
  const int64_t asked_before = asked.load();
  if (stop->requested()) {
    if (is_same_request(*stop, signal, asked_before)) {
      if (asked_before == 0 && !is_repeated(signal)) asked.store(milliseconds_now());
      return;
    }
    say("\ngallop: second signal, ending at once; the last checkpoint is kept\n");
    end_at_once();
  }
  // Ctrl-C after a closed pipe counts as the first request.
  if (!is_repeated(signal)) asked.store(milliseconds_now());
  stop->request(signal);
  if (says_stopping.load()) say(stopping_text(signal));
}

bool is_ignored(int signal) {
  struct sigaction before = {};
  return sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN;
}

}  // namespace

SignalGuard::SignalGuard(StopRequest& stop, Says says, Scope scope) : stop_(stop), scope_(scope) {
  says_stopping.store(says == Says::kStopping);
  asked_by_starter.store(0);
  asked_by_other.store(0);
  is_ending.store(false);
  is_starting.store(true);
  target.store(&stop);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const int signal : kSignals) {
    // nohup ignores SIGHUP, and service managers ignore SIGPIPE.
    if ((signal == SIGHUP || signal == SIGPIPE) && is_ignored(signal)) continue;
    struct sigaction before = {};
    sigaction(signal, &action, &before);
    replaced_.emplace_back(signal, before);
  }
  if (scope == Scope::kCommand) deliver_held_signals();
}

SignalGuard::~SignalGuard() {
  for (auto& [signal, before] : replaced_) {
    if (signal == SIGPIPE && scope_ == Scope::kCommand) before.sa_handler = SIG_IGN;
    sigaction(signal, &before, nullptr);
  }
  target.store(nullptr);
  wait_if_ending();
}

void SignalGuard::started() {
  is_starting.store(false);
  wait_if_ending();
}

StartUpEnd::StartUpEnd(int file, std::string record, std::string message)
    : file_(file), record_(std::move(record)), message_(std::move(message)) {
  start_up_end.store(this);
}

StartUpEnd::StartUpEnd(const fs::path& log, std::string record, std::string message)
    : log_(log.string()), record_(std::move(record)), message_(std::move(message)) {
  start_up_end.store(this);
}

StartUpEnd::~StartUpEnd() {
  start_up_end.store(nullptr);
  wait_if_ending();
}

void StartUpEnd::write(bool says) const {
  const int file =
      file_ >= 0 ? file_ : open(log_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file >= 0) write_all(file, record_);
  if (says) say(message_);
}

}  // namespace gallop::app
