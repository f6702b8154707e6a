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

/// What a process prints, in lines, each kept in a file as it comes. A thread of its own reads, so
/// that a process that prints much does not stand still while its worker waits for a leader. The
/// others are for one thread.
class OutputLines {
 public:
  /// Reads from `descriptor`, which outlives it. Throws DeviceError where the file cannot be
  /// written.
  OutputLines(int descriptor, const fs::path& file);
  ~OutputLines();
  OutputLines(const OutputLines&) = delete;
  OutputLines& operator=(const OutputLines&) = delete;

  /// Waits a moment for more. False once there is none any more.
  bool wait(std::chrono::milliseconds moment);

  /// Hands over each whole line that has come; one of more than 1 MiB is lost.
  template <typename Function>
  void each_line(const Function& function) {
    size_t begin = 0;
    for (size_t end = 0; (end = pending_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      function(std::string_view(pending_).substr(begin, end - begin));
    }
    pending_.erase(0, begin);
    if (pending_.size() > kLongestLine) pending_.clear();
  }

  /// What came last, without the end of a line.
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
  std::string pending_;  // Of whoever waits.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string arrived_;
  bool is_over_ = false;
  std::atomic<bool> ends_ = false;
  std::thread reader_;
};

}  // namespace gallop::app
