#include "gallop/app/run_pusher.h"

#include <sys/prctl.h>

#include <chrono>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"

namespace gallop::app {

namespace {

constexpr std::chrono::seconds kPeriod{2};
constexpr double kPatienceSeconds = 10;  // For the final push.

}  // namespace

RunPusher::RunPusher(const fs::path& run, const track::mlflow::Target& target)
    : push_(run, target), thread_([this] { push(); }) {}

RunPusher::~RunPusher() { stop(); }

void RunPusher::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void RunPusher::push() {
  prctl(PR_SET_NAME, "mlflow");
  std::unique_lock lock(mutex_);
  while (!is_done_) {
    lock.unlock();
    try {
      push_.send();
    } catch (const Error&) {
      // Reported at the end if the error persists.
    }
    lock.lock();
    wake_.wait_for(lock, kPeriod, [this] { return is_done_; });
  }
}

std::string RunPusher::finish() {
  stop();
  const double until = monotonic_seconds() + kPatienceSeconds;
  for (;;) {
    try {
      push_.send();
      return {};
    } catch (const DeviceError& error) {
      if (monotonic_seconds() >= until) return error.what();
      std::this_thread::sleep_for(kPeriod);
    } catch (const Error& error) {
      return error.what();
    }
  }
}

}  // namespace gallop::app
