#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "gallop/base/file.h"

namespace gallop::app {

/// The output of a process, in lines, which are also written to a file. A thread reads it, so that
/// a process with much output does not block while its worker waits for a leader. All functions
/// must be called from one thread.
class OutputLines {
 public:
  /// Reads from `descriptor`, which must outlive it. Throws DeviceError if the file cannot be
  /// written.
  OutputLines(int descriptor, const fs::path& file);
  ~OutputLines();
  OutputLines(const OutputLines&) = delete;
  OutputLines& operator=(const OutputLines&) = delete;

  /// Waits up to `moment` for more output. False at the end of the output.
  bool wait(std::chrono::milliseconds moment);

  /// Calls `function` with each complete line; lines of more than 1 MiB are dropped.
  template <typename Function>
  void each_line(const Function& function) {
    size_t begin = 0;
    for (size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      function(std::string_view(pending_).substr(begin, end - begin));
    }
    pending_.erase(0, begin);
    if (pending_.size() > kLongestLine) pending_.clear();
  }

  /// Calls `function` with the last, incomplete line.
  template <typename Function>
  void last_line(const Function& function) {
    if (!pending_.empty()) function(std::string_view(pending_));
    pending_.clear();
  }

 private:
  static constexpr size_t kLongestLine = size_t{1} << 20;

  void read_all();
  bool read_some();
  bool has_room();

  int descriptor_;
  std::unique_ptr<FILE, int (*)(FILE*)> file_;
  std::string pending_;  // Used by the waiting thread.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string arrived_;
  bool is_over_ = false;
  std::atomic<bool> ends_ = false;
  std::thread reader_;
};

}  // namespace gallop::app
