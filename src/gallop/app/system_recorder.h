#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "gallop/track/system/system_meter.h"

namespace gallop::app {

/// Looks at the machine every ten seconds, and once more at its end, in a thread of its own.
class SystemRecorder {
 public:
  /// `sink` is called by that thread. It throws nothing.
  SystemRecorder(int processes, std::function<void(const track::SystemReading&)> sink);
  ~SystemRecorder();
  SystemRecorder(const SystemRecorder&) = delete;
  SystemRecorder& operator=(const SystemRecorder&) = delete;

 private:
  void record();

  std::function<void(const track::SystemReading&)> sink_;
  track::SystemMeter meter_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace gallop::app
