#include "gallop/app/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <string_view>

#include "gallop/base/child_process.h"
#include "gallop/base/error.h"

namespace gallop::app {

namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};
constexpr int64_t kSameRequestMilliseconds = 1000;

// A signal handler has no other way to reach the request.
std::atomic<StopRequest*> target{nullptr};
std::atomic<bool> says_stopping{true};

// When this process was asked first, by the one that started it or by any other; 0: not yet.
std::atomic<int64_t> asked_by_starter{0}, asked_by_other{0};

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
}

int64_t milliseconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{1000} * now.tv_sec + now.tv_nsec / 1000000;
}

// What manages processes often asks in two ways, as a terminal or Slurm all of them and a starter
// its own; only a second Ctrl-C is a person's.
bool is_same_request(const StopRequest& stop, int signal, int64_t asked) {
  const bool again = signal == SIGINT && stop.signal() == SIGINT;
  return !again && (asked == 0 || milliseconds_now() - asked < kSameRequestMilliseconds);
}

void handle(int signal, siginfo_t* info, void* /*context*/) {
  StopRequest* stop = target.load();
  if (stop == nullptr) return;
  const bool is_of_starter = info->si_code == SI_USER && info->si_pid == getppid();
  auto& asked = is_of_starter ? asked_by_starter : asked_by_other;
  const int64_t asked_before = asked.load();
  if (asked_before == 0) asked.store(milliseconds_now());
  if (stop->requested()) {
    if (is_same_request(*stop, signal, asked_before)) return;
    say("\ngallop: second signal, ending at once; the last checkpoint stays\n");
    kill_groups();
    _exit(static_cast<int>(ExitCode::kStopped));
  }
  stop->request(signal);
  if (says_stopping.load())
    say("\ngallop: stopping after this step and saving (a second signal ends at once)\n");
}

}  // namespace

SignalGuard::SignalGuard(StopRequest& stop, Says says) {
  says_stopping.store(says == Says::kStopping);
  asked_by_starter.store(0);
  asked_by_other.store(0);
  target.store(&stop);
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  for (const int signal : kSignals) {
    struct sigaction before = {};
    // nohup has SIGHUP ignored.
    if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 &&
        before.sa_handler == SIG_IGN) {
      continue;
    }
    sigaction(signal, &action, nullptr);
    handled_.push_back(signal);
  }
}

SignalGuard::~SignalGuard() {
  for (const int signal : handled_) std::signal(signal, SIG_DFL);
  target.store(nullptr);
}

}  // namespace gallop::app
