#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace gallop {

/// Bytes of memory that this process may still take without the machine swapping: what the system
/// calls available, within the cgroup's limit.
int64_t available_memory();

/// What of this process is in memory now, its code and what it shares included, and at most so far.
/// 0 where the system does not tell.
int64_t resident_bytes();
int64_t peak_resident_bytes();

/// How many processes, of anybody, the system has killed so far because memory ran out, in a cgroup
/// or altogether. 0 where it does not tell.
int64_t processes_killed_for_memory();

/// While it lives, looks every millisecond at what of this process is in memory, and calls back, in
/// a thread of its own, once that is more than a limit.
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
