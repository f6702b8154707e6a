#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace gallop {

/// Bytes of memory that this process can allocate without swapping: MemAvailable, within the
/// cgroup's limit.
int64_t available_memory();

/// The resident set size of this process, current and peak. 0 if unknown.
int64_t resident_bytes();
int64_t peak_resident_bytes();

/// The number of processes killed by the OOM killer so far, in this cgroup or on the whole system.
/// 0 if unknown.
int64_t processes_killed_for_memory();

/// Polls the resident memory of this process every millisecond, and calls back, in its own thread,
/// once it exceeds a limit.
class MemoryWatch {
 public:
  MemoryWatch(int64_t limit_bytes, std::function<void()> exceeded);
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;
  MemoryWatch& operator=(const MemoryWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace gallop
