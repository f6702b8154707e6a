#include "gallop/app/signals.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "gallop/base/error.h"

namespace gallop::app {

namespace {

constexpr int kSignals[] = {SIGTERM, SIGINT, SIGUSR1};

// A signal handler has no other way to reach the request.
std::atomic<StopRequest*> target{nullptr};
std::atomic<bool> says_stopping{true};

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, text.data(), text.size());
}

void handle(int signal) {
  StopRequest* stop = target.load();
  if (stop == nullptr) return;
  if (stop->requested()) {
    say("\ngallop: second signal, ending at once; the last checkpoint stays\n");
    _exit(static_cast<int>(ExitCode::kStopped));
  }
  stop->request(signal);
  if (says_stopping.load())
    say("\ngallop: stopping after this step and saving (a second signal ends at once)\n");
}

}  // namespace

SignalGuard::SignalGuard(StopRequest& stop, Says says) {
  says_stopping.store(says == Says::kStopping);
  target.store(&stop);
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) sigaction(signal, &action, nullptr);
}

SignalGuard::~SignalGuard() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  target.store(nullptr);
}

}  // namespace gallop::app
