#include "gallop/app/system_recorder.h"

#include <sys/prctl.h>

#include <chrono>
#include <new>

namespace gallop::app {

namespace {

constexpr std::chrono::seconds kPeriod{10};

}  // namespace

SystemRecorder::SystemRecorder(int processes, std::function<void(const track::SystemReading&)> sink)
    : sink_(std::move(sink)), meter_(processes), thread_([this] { record(); }) {}

SystemRecorder::~SystemRecorder() {
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void SystemRecorder::record() {
  prctl(PR_SET_NAME, "system");
  std::unique_lock lock(mutex_);
  while (!is_done_) {
    wake_.wait_for(lock, kPeriod, [this] { return is_done_; });
    try {
      sink_(meter_.read());
    } catch (const std::bad_alloc&) {
      // A step that takes all memory is cut into parts; it only lacks this reading.
    }
  }
}

}  // namespace gallop::app
