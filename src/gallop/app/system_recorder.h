#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "gallop/track/system/system_meter.h"

namespace gallop::app {

/// Samples the state of the machine every ten seconds, and once more at the end, in its own thread.
class SystemRecorder {
 public:
  /// `sink` is called in that thread and must not throw.
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
